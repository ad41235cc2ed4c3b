"""The admin surface: one API, reached by people's browsers, by programs, and by operator commands on the socket."""

from agent_gate.access.answering import AnswersByRole
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
from agent_gate.surfaces.admin.doors.provider import ProviderDoor
from agent_gate.surfaces.admin.doors.slack import SOON, SlackButtons
from agent_gate.surfaces.admin.doors.socket import AdminSocket


class AdminSurface:
    """`listener` answers on TCP, `socket` on the admin socket; both ask `api`."""

    def __init__(self, admin: Admin, buttons: Buttons, pool: Pool) -> None:
        self.api = api = AdminApi(admin)
        inbox, people = admin.calls.inbox, admin.who.people
        answer = AnswersByRole(people, inbox.get, admin.calls.answer)
        answers = Answers(
            buttons,
            inbox,
            admin.clock,
            admin.numbers.metrics,
            channels=lambda: link_people(admin.setup.configuration.settings.channels),
            answer=answer,
            became=admin.calls.learn_outcome,
            check_passphrase=admin.who.passphrases.check,
        )
        slack = SlackButtons(
            buttons,
            admin.clock,
            pool,
            channels=lambda: slack_channels(admin.setup.configuration.settings.channels),
            answer=answer,
            became=lambda approval: admin.calls.learn_outcome(approval, wait=SOON),
            check_passphrase=admin.who.passphrases.check,
        )
        self.listener = AdminListener(
            api,
            admin.who.logins,
            PageFiles(folder()),
            answers,
            slack,
            Callback(admin.secrets.sign_ins, admin.setup.listeners),
            ProviderDoor(admin.who.vouching, admin.who.logins, admin.setup.listeners, admin.clock),
        )
        self.socket = AdminSocket(api, people, Pairings(admin.peering))
