"""Health with several gateways on one PostgreSQL, in a real browser."""

from tests import postgres
from tests.cluster.several import several
from tests.gateway import Api
from tests.ui.ui_house import opened


def test_health_shows_every_gateway_and_which_one_is_gone(tab, tmp_path):
    with Api() as api, several(tmp_path, postgres.server().new_database(), api) as gateways:
        one = gateways.start("one")
        gateways.start("two")
        page = opened(tab, one, "health")
        table = page.locator("section", has=page.get_by_role("heading", name="Gateways"))
        table.locator("tr", has_text="one (this one)").get_by_text("serving").wait_for()
        table.locator("tr", has_text="two").get_by_text("serving").wait_for()
        gateways.stop("two")
        page.reload()
        table.locator("tr", has_text="two").get_by_text("stopped").wait_for()
        assert table.get_by_text("serving").count() == 1
