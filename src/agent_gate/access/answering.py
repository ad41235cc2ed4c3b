"""What a person may answer; answers that come over channels are held to it as those on the page are."""

from collections.abc import Awaitable, Callable

from agent_gate.access.people import People
from agent_gate.access.roles import Rights, check_answer
from agent_gate.core.approval import Answer, Approval


def verdicts_of(approval: Approval, person: str, rights: Rights) -> list[str]:
    """The answers to this question that would not be refused to this person."""
    named = approval.decision.approvers
    if not rights.answer_for(approval.namespace) or (named and person not in named):
        return []
    said = approval.decision.count > 1 and person in approval.yeses
    return ["deny"] if said or person == approval.decision.not_by != "" else ["approve", "deny"]


class AnswersByRole:
    """Hands an answer on to `answer`, from somebody who may give it."""

    def __init__(
        self,
        people: People,
        find: Callable[[str], Awaitable[Approval | None]],
        answer: Callable[[str, Answer], Awaitable[Approval]],
    ) -> None:
        self._people, self._find, self._answer = people, find, answer

    async def __call__(self, approval_id: str, answer: Answer) -> Approval:
        approval = await self._find(approval_id)
        if approval is not None:
            check_answer(self._people.rights(answer.person), approval.namespace, answer.person)
        return await self._answer(approval_id, answer)
