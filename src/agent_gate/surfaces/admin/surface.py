"""The admin surface: one API, reached by people's browsers, by programs, and by operator commands on the socket."""

from agent_gate.approval.channels.buttons import Buttons
from agent_gate.approval.channels.make import link_people
from agent_gate.approval.channels.webhook import slack_channels
from agent_gate.net.pool import Pool
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.api import AdminApi
from agent_gate.surfaces.admin.doors.answers import Answers
from agent_gate.surfaces.admin.doors.callback import Callback
from agent_gate.surfaces.admin.doors.listener import AdminListener
from agent_gate.surfaces.admin.doors.page import PageFiles, folder
from agent_gate.surfaces.admin.doors.pairings import Pairings
from agent_gate.surfaces.admin.doors.slack import SOON, SlackButtons
from agent_gate.surfaces.admin.doors.socket import AdminSocket


class AdminSurface:
    """`listener` answers on TCP, `socket` on the admin socket; both ask `api`."""

    def __init__(self, admin: Admin, buttons: Buttons, pool: Pool) -> None:
        self.api = api = AdminApi(admin)
        answers = Answers(
            buttons,
            admin.calls.inbox,
            admin.clock,
            admin.numbers.metrics,
            channels=lambda: link_people(admin.setup.configuration.settings.channels),
            answer=admin.calls.answer,
            became=admin.calls.became,
            check_passphrase=admin.who.passphrases.check,
        )
        slack = SlackButtons(
            buttons,
            admin.clock,
            pool,
            channels=lambda: slack_channels(admin.setup.configuration.settings.channels),
            answer=admin.calls.answer,
            became=lambda approval: admin.calls.became(approval, wait=SOON),
            check_passphrase=admin.who.passphrases.check,
        )
        self.listener = AdminListener(
            api,
            admin.who.logins,
            PageFiles(folder()),
            answers,
            slack,
            Callback(admin.sign_ins, admin.setup.listeners),
        )
        self.socket = AdminSocket(api, admin.who.people, Pairings(admin.peering))
