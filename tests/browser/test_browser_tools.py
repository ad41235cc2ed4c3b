"""Each tool of the browser against a local page made for it."""

import base64
import json

import pytest
from tests.browser.browser_house import Agent, browser_house, image_of, page

ALLOW_ALL = """\
defaults: [{pattern: "*", action: allow}]
rules:
  - {pattern: "browser_*", action: allow, extra: [facts.submits, facts.downloads, facts.uploads, facts.runs]}
"""
FORM = """<!doctype html><title>Form</title><form action=/sent method=post enctype=multipart/form-data>
<label>Name <input name=name placeholder="Your name"></label><label><input type=checkbox name=news> News</label>
<label><input type=radio name=size value=s> Small</label><label><input type=radio name=size value=l> Large</label>
<label>Country <select name=country><option>Austria<option>Belgium<option>Chile</select></label>
<label>Letter <textarea name=letter></textarea></label><label>File <input type=file name=file multiple></label>
<button>Send</button></form><div id=log></div>
<button id=pick type=button>Choose</button><input type=file id=hidden style="display:none">
<script>pick.onclick=()=>hidden.click(); hidden.onchange=()=>log.textContent='got '+hidden.files[0].name;
document.addEventListener('keydown', e => { if (e.key==='k') log.textContent='key k' });</script>"""
MENU = """<style>.m{display:none} .h:hover .m{display:block}</style><div class=h><button>Menu</button>
<a class=m href=/one>Settings</a></div>"""
DIALOGS = """<button onclick="this.nextSibling.textContent=confirm('Delete all?')?'deleted':'kept'">Delete</button><p></p>
<button onclick="document.querySelector('p').textContent='hello '+prompt('Who?')">Greet</button>"""
SCROLL = """<h1>Feed</h1><ul id=list></ul><script>let n=0;
function more(){for(let i=0;i<20;i++){const li=document.createElement('li');li.style.height='60px';
li.innerHTML=`<a href=/item/${++n}>Story ${n}</a>`;list.append(li)}}
more();addEventListener('scroll',()=>{if(innerHeight+scrollY>document.body.offsetHeight-200&&n<60)more()})</script>"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    with browser_house(folder, ALLOW_ALL, max_contexts=64, timeout=20, max_download=100_000) as made:
        yield made


def serve(agent, **pages):
    agent.site.replies.update({f"/{name}": page(body) for name, body in pages.items()})


def test_a_form_is_filled_at_once_and_sent(agent):
    serve(agent, form=FORM, sent="<h1>Received</h1>")
    said = agent.open("/form")
    assert 'combobox "Country"' in said
    assert '= "Austria" of "Austria", "Belgium", "Chile"' in said
    fields = [
        ("Name", "Ada"),
        ("News", "true"),
        ("Large", "true"),
        ("Country", "Chile"),
        ("Letter", "Dear all"),
    ]
    filled = agent.call(
        "fill_form", fields=[{"ref": agent.ref(name), "value": value} for name, value in fields]
    )
    assert filled.count("ok:") == 5
    assert "Received" in agent.call("click", ref=agent.ref("Send", said))
    [sent] = [one["body"].decode() for one in agent.site.requests if one["path"] == "/sent"]
    for value in ("Ada", "on", "Chile", "Dear all"):
        assert value in sent


def test_a_field_that_cannot_be_filled_does_not_keep_the_others_from_it(agent):
    serve(agent, form="<label>A <input></label><button>B</button>")
    agent.open("/form")
    fields = [{"ref": agent.ref("A"), "value": "1"}, {"ref": agent.ref("B"), "value": "2"}]
    said = agent.call("fill_form", fields=fields)
    assert "ok: textbox “A”" in said
    assert "failed: button “B”" in said


def test_an_option_is_selected_by_its_label(agent):
    serve(agent, form=FORM)
    agent.open("/form")
    said = agent.call("select_option", ref=agent.ref("Country"), values=["Belgium"])
    assert '= "Belgium"' in said


def test_hovering_shows_a_menu(agent):
    serve(agent, menu=MENU)
    agent.open("/menu")
    assert "Settings" not in agent.last
    assert '"Settings"' in agent.call("hover", ref=agent.ref("Menu"))


def test_a_key_reaches_the_page(agent):
    serve(agent, form=FORM)
    agent.open("/form")
    assert "+ key k" in agent.call("press_key", key="k")


def test_typing_with_submit_sends_the_form(agent):
    serve(
        agent, find="<form action=/found><label>Query <input name=q></label></form>", found="<h1>Found</h1>"
    )
    agent.open("/find")
    assert "Found" in agent.call("type", ref=agent.ref("Query"), text="lamp", submit=True)
    assert "/found?q=lamp" in [one["path"] for one in agent.site.requests]


def test_slow_typing_is_heard_key_by_key(agent):
    serve(
        agent,
        keys="<label>K <input oninput='n.textContent=++window.c'></label><p id=n></p><script>c=0</script>",
    )
    agent.open("/keys")
    assert "+ 3" in agent.call("type", ref=agent.ref("K"), text="abc", slowly=True)


def test_an_endless_list_grows_by_scrolling(agent):
    serve(agent, feed=SCROLL)
    agent.open("/feed")
    agent.call("scroll", direction="down", amount=3000)
    seen = agent.call("snapshot", full=True)
    assert "Story 30" in seen


def test_back_and_forward_go_through_the_history(agent):
    serve(agent, one="<h1>One</h1><a href=/two>Two</a>", two="<h1>Second</h1>")
    agent.open("/one")
    agent.call("click", ref=agent.ref("Two"))
    assert "# One" in agent.call("back")
    assert "# Second" in agent.call("forward")


def test_waiting_ends_when_the_text_is_there(agent):
    serve(agent, slow="<p id=p>Loading</p><script>setTimeout(()=>p.textContent='Ready',400)</script>")
    agent.open("/slow")
    agent.call("wait", text="Ready")
    agent.call("wait", textGone="Loading")
    assert "Ready" in agent.call("snapshot")
    assert "Say what to wait for" in agent.refused("wait")


def test_tabs_are_opened_listed_selected_and_closed(agent):
    serve(agent, one="<h1>One</h1>", two="<h1>Two</h1>")
    agent.open("/one")
    assert "# Two" in agent.call("tabs", action="new", url=f"{agent.site.url}/two")
    assert "* 1:" in agent.call("tabs", action="list")
    assert "# One" in agent.call("tabs", action="select", index=0)
    agent.call("tabs", action="close", index=1)
    assert "/two" not in agent.last
    assert "There is no tab 7" in agent.refused("tabs", action="select", index=7)


def test_a_dialog_waits_for_an_answer(agent):
    serve(agent, dialogs=DIALOGS)
    agent.open("/dialogs")
    said = agent.call("click", ref=agent.ref("Delete"))
    assert 'A dialog is open: confirm "Delete all?"' in said
    assert "Answer it with browser_dialog" in agent.refused("snapshot")
    assert "deleted" in agent.call("dialog", accept=True)
    agent.call("click", ref=agent.ref("Greet"))
    assert "hello Ada" in agent.call("dialog", accept=True, text="Ada")
    assert "No dialog is open" in agent.refused("dialog", accept=True)


def test_a_screenshot_reaches_the_client_as_an_image(agent):
    serve(agent, form=FORM)
    agent.open("/form")
    agent.call("screenshot")
    assert image_of(agent.blocks[1])[:3] == b"\xff\xd8\xff"
    assert agent.blocks[1]["mimeType"] == "image/jpeg"


def test_a_page_becomes_a_pdf(agent):
    serve(agent, form="<h1>Print</h1>")
    agent.open("/form")
    reply = agent.reply("pdf").json
    text = json.dumps(reply)
    assert "application/pdf" in text or "artifacts" in text


def test_a_script_gives_its_value(agent):
    serve(agent, form="<h1>Print</h1>")
    agent.open("/form")
    assert (
        agent.call("eval", expression="({a: document.querySelector('h1').textContent})") == '{"a": "Print"}'
    )
    assert "The script failed" in agent.refused("eval", expression="nothing.here")


def test_the_console_and_the_requests_are_shown(agent):
    serve(agent, log="<script>console.warn('careful');fetch('/data')</script>", data="1")
    agent.open("/log")
    assert "warning: careful" in agent.call("console")
    assert "/data (fetch)" in agent.call("network")


def test_a_file_is_downloaded_and_comes_whole(agent):
    agent.site.replies["/report.csv"] = page(
        "a,b\n1,2\n", "text/csv", **{"Content-Disposition": "attachment"}
    )
    serve(agent, files="<a href=/report.csv>Report</a><button>Nothing</button>")
    agent.open("/files")
    assert "Downloaded report.csv, 8 bytes" in agent.call("download", ref=agent.ref("Report"))
    assert agent.blocks[1]["resource"]["text"] == "a,b\n1,2\n"


def test_a_click_that_leads_to_a_file_does_not_take_it(agent):
    agent.site.replies["/report.csv"] = page("a,b\n", "text/csv", **{"Content-Disposition": "attachment"})
    serve(agent, files="<h1>Files</h1><a href=/report.csv>Report</a>")
    agent.open("/files")
    agent.call("click", ref=agent.ref("Report"))
    assert "offered the file 'report.csv'" in agent.last + agent.call("snapshot")


def test_a_file_that_is_too_large_is_refused(agent):
    agent.site.replies["/big.bin"] = page(b"x" * 200_000, "application/octet-stream")
    serve(agent, files="<a href=/big.bin download>Big</a>")
    agent.open("/files")
    assert "at most 100000" in agent.refused("download", ref=agent.ref("Big"))


def test_files_are_given_to_a_field_and_to_a_chooser(agent):
    serve(agent, form=FORM, sent="<h1>Received</h1>")
    first = agent.open("/form")
    given = [
        {"name": "note.txt", "text": "hello"},
        {"name": "../x.bin", "base64": base64.b64encode(b"\0\1").decode()},
    ]
    agent.call("upload", ref=agent.ref("File"), files=given)
    said = agent.call("upload", ref=agent.ref("Choose", first), files=[{"name": "b.txt", "text": "b"}])
    assert "got b.txt" in said
    agent.call("click", ref=agent.ref("Send", first))
    [sent] = [one["body"] for one in agent.site.requests if one["path"] == "/sent"]
    assert b'filename="note.txt"' in sent
    assert b"hello" in sent
    assert b'filename="x.bin"' in sent


def test_frames_and_shadow_roots_are_part_of_the_page(agent):
    inner = "<button onclick=\"this.textContent='Inside pressed'\">Inside</button>"
    shadow = "<div id=open></div><div id=closed></div><script>for(const mode of ['open','closed']){const r="
    shadow += (
        "document.getElementById(mode).attachShadow({mode});r.innerHTML=`<button>In ${mode}</button><p></p>`;"
    )
    shadow += "r.querySelector('button').onclick=()=>{document.title='pressed '+mode}}</script>"
    serve(agent, outer=f"<h1>Outer</h1><iframe src=/inner></iframe>{shadow}", inner=inner)
    first = agent.open("/outer")
    assert "Inside pressed" in agent.call("click", ref=agent.ref("Inside", first))
    for mode in ("open", "closed"):
        agent.call("click", ref=agent.ref(f"In {mode}", first))
        assert f"Page: pressed {mode}" in agent.call("snapshot")


def test_what_listens_to_clicks_without_a_role_can_be_clicked(agent):
    serve(
        agent,
        spa="<span id=s>Just a span</span><p id=p></p><script>s.onclick=()=>p.textContent='span!'</script>",
    )
    agent.open("/spa")
    assert "+ span!" in agent.call("click", ref=agent.ref("Just a span"))


def test_a_login_with_cookies_lasts_from_page_to_page(agent):
    serve(
        agent,
        login="<form action=/in method=post><label>User <input name=u></label><button>Sign in</button></form>",
    )
    agent.site.replies["/in"] = (303, {"Location": "/me", "Set-Cookie": "who=ada; HttpOnly"}, b"")
    agent.site.replies["/me"] = lambda handler, _: page(f"<h1>You are {handler.headers.get('Cookie')}</h1>")
    said = agent.open("/login")
    agent.call("type", ref=agent.ref("User"), text="ada")
    assert "You are who=ada" in agent.call("click", ref=agent.ref("Sign in", said))


def test_a_single_page_app_says_what_changed(agent):
    app = """<h1>Tasks</h1><input id=t placeholder="New task"><button id=a>Add</button><ul id=l></ul><script>
a.onclick=()=>{const li=document.createElement('li');li.innerHTML=`<button>Done ${t.value}</button>`;
li.firstChild.onclick=()=>li.remove();l.append(li);history.pushState(0,'','#'+l.children.length)}</script>"""
    serve(agent, app=app)
    first = agent.open("/app")
    agent.call("type", ref=agent.ref("New task"), text="milk")
    agent.call("click", ref=agent.ref("Add", first))
    assert "Done milk" in agent.last
    gone = agent.call("click", ref=agent.ref("Done milk"))
    assert "gone" in gone


def test_a_reference_that_is_gone_is_stale_and_the_nearest_is_offered(agent):
    swap = "<div id=d><button>Pay now</button></div><a href=# onclick=\"d.innerHTML='<button>Pay now</button>'\">Again</a>"
    serve(agent, swap=swap)
    first = agent.open("/swap")
    agent.call("click", ref=agent.ref("Again", first))
    said = agent.refused("click", ref=agent.ref("Pay now", first))
    assert "is stale: it was button “Pay now”" in said
    assert "The nearest now is button “Pay now” [" in said
    assert "There is no e9999" in agent.refused("click", ref="e9999")


def test_nothing_can_be_done_before_a_page_is_open(house):
    nobody = Agent(*house, "nobody")
    for tool, arguments in (("click", {"ref": "e1"}), ("snapshot", {}), ("back", {})):
        assert "No page is open" in nobody.refused(tool, **arguments)
