import json, zlib, itertools, traceback
from dataclasses import replace
import pytest
from tests.scenarios.hostile_server import *
from tests.scenarios.hostile_world import *
from memseal.errors import MemsealError
import tests.scenarios.conftest
from tests.scenarios.conftest import *

@pytest.fixture(scope="module")
def server(tmp_path_factory):
    import subprocess, sys
    h=HostileServer()
    p=subprocess.Popen([sys.executable,"-m","memseal_server","--store",str(tmp_path_factory.mktemp("s")/"st"),"--listen","127.0.0.1:0","--url",h.url],stdout=subprocess.PIPE,text=True)
    h.target=p.stdout.readline().split()[2]
    yield h
    p.terminate();p.wait();p.stdout.close();h.close()

def rec(index, body):
    head=len(body).to_bytes(4,"big")+index.to_bytes(4,"big")
    return head+zlib.crc32(head).to_bytes(4,"big")+body

def heads(change):
    def lie(a,r):
        if a.path.startswith("/heads") and r.status==200:
            v=r.json; v2=change(v); return r.with_json(v if v2 is None else v2)
        return r
    return lie
def rawheads(body,status=200,headers={}):
    return lambda a,r: Reply(status,body,headers) if a.path.startswith("/heads") else r

def L(w,which): return stream_of(getattr(w,which)).hex()
LIES={}
def lie(f): LIES[f.__name__]=f; return f
@lie
def shorter_two(w): return heads(lambda v: v["logs"][L(w,"two")].update(length=64+1108,records=1) )
@lie
def gone_two(w): return heads(lambda v: (v["logs"].pop(L(w,"two")),None)[1])
@lie
def other_chain_two(w): return heads(lambda v: v["logs"][L(w,"two")].update(chain="00"*32))
@lie
def other_chain_one(w): return heads(lambda v: v["logs"][L(w,"one")].update(chain="00"*32))
@lie
def other_chain_one_same_length(w):
    e=end_of(w.one,stream_of(w.one)); return heads(lambda v: v["logs"][L(w,"one")].update(chain="00"*32,length=e.length,records=e.records))
@lie
def longer_two(w): return heads(lambda v: v["logs"][L(w,"two")].update(length=99999))
@lie
def longer_one(w): return heads(lambda v: v["logs"][L(w,"one")].update(length=99999))
@lie
def next_wrong(w): return heads(lambda v: v["logs"][L(w,"one")].update(next=77))
@lie
def next_huge(w): return heads(lambda v: v["logs"][L(w,"one")].update(next=10**60))
@lie
def length_huge(w): return heads(lambda v: v["logs"][L(w,"two")].update(length=10**60))
@lie
def kr_digest(w): return heads(lambda v: v["keyring"].update(digest="11"*32))
@lie
def kr_more(w): return heads(lambda v: v["keyring"].update(version=3))
@lie
def kr_huge(w): return heads(lambda v: v["keyring"].update(version=10**60))
@lie
def kr_older(w): return heads(lambda v: v["keyring"].update(version=1))
@lie
def kr_zero(w): return heads(lambda v: v["keyring"].update(version=0))
@lie
def kr_neg(w): return heads(lambda v: v["keyring"].update(version=-1))
@lie
def kr_none(w): return heads(lambda v: v.update(keyring=None))
@lie
def logs_list(w): return heads(lambda v: v.update(logs=[]))
@lie
def logs_empty(w): return heads(lambda v: v.update(logs={}))
@lie
def not_json(w): return rawheads(b"<html>")
@lie
def deep_json(w): return rawheads(b"["*200000)
@lie
def big_int(w): return rawheads(b"9"*10000)
@lie
def nonutf8(w): return rawheads(b"\xff\xfe\x00")
@lie
def deep_problem(w): return rawheads(b"["*200000,500)
@lie
def nonutf8_problem(w): return rawheads(b"\xff\xfe",500)
@lie
def st304(w): return rawheads(b"",304)
@lie
def st204(w): return rawheads(b"",204)
@lie
def st206(w): return rawheads(b"{}",206)
@lie
def st500html(w): return rawheads(b"<html>",500)
@lie
def gzip(w): return lambda a,r: replace(r,headers={**r.headers,"Content-Encoding":"gzip"})
@lie
def code_terminal(w): return lambda a,r: problem(500,"\x1b[31mred\n") if a.path.startswith("/heads") else r
@lie
def code_terminal_log(w): return lambda a,r: problem(500,"\x1b[31mred\n"*100) if a.is_("GET","/logs") else r
@lie
def detail_terminal(w): return lambda a,r: problem(500,"limit","\x1b[31mred\n\u202e") if a.path.startswith("/heads") else r
for i,now in enumerate([1e300,-1e18,1e18,float("nan"),float("inf"),10**400,True,"x",[1],-1,253402300800, 0]):
    LIES[f"clock_{i}"]=(lambda now: lambda w: rawheads(json.dumps({"code":"clock","now":now,"detail":"x"}).encode(),401))(now)
def logs_body(f):
    return lambda a,r: replace(r,body=f(a,r.body)) if a.is_("GET","/logs") and r.status==200 else r
@lie
def log_empty(w): return logs_body(lambda a,b:b"")
@lie
def log_trunc(w): return logs_body(lambda a,b:b[:500])
@lie
def log_flip(w): return logs_body(lambda a,b:b[:600]+bytes([b[600]^1])+b[601:])
@lie
def log_fliphead(w): return logs_body(lambda a,b:b[:2]+bytes([b[2]^1])+b[3:])
@lie
def log_double(w): return logs_body(lambda a,b:b+b)
@lie
def log_replay(w):
    f=(w.folder/"two"/"logs"/f"{L(w,'two')}.mseal")
    return logs_body(lambda a,b:f.read_bytes()[:len(b)])
@lie
def log_garbage_tail(w):
    i=end_of(w.two,stream_of(w.two))
    g=rec(i.records,bytes(1096))
    def l(a,r):
        if a.path.startswith("/heads"):
            v=r.json; v["logs"][L(w,"two")]["length"]+=len(g); return r.with_json(v)
        if a.is_("GET","/logs"): return replace(r,body=r.body+g)
        return r
    return l
@lie
def log_garbage_tail_own(w):
    i=end_of(w.one,stream_of(w.one))
    g=rec(i.records,bytes(1096))
    def l(a,r):
        if a.path.startswith("/heads"):
            v=r.json; v["logs"][L(w,"one")]["length"]=i.length+len(g); return r.with_json(v)
        if a.is_("GET","/logs/"+L(w,"one")): return Reply(200,g)
        return r
    return l
@lie
def log_garbage_instead(w):
    return logs_body(lambda a,b: rec(int.from_bytes(b[4:8],"big"),bytes(len(b)-12)))
@lie
def log_keyring(w): return logs_body(lambda a,b:(w.folder/"two"/"keyring"/"00000002.mseal").read_bytes())
@lie
def log_unknown_stream(w):
    def l(a,r):
        if a.path.startswith("/heads"):
            v=r.json; v["logs"]["ab"*16]=dict(v["logs"][L(w,"two")]); return r.with_json(v)
        if a.is_("GET","/logs/"+"ab"*16): return Reply(200,(w.folder/"two"/"logs"/f"{L(w,'two')}.mseal").read_bytes())
        return r
    return l
@lie
def log_404(w): return lambda a,r: problem(404,"not_found") if a.is_("GET","/logs") else r
@lie
def put_lie(w): return lambda a,r: Reply(201,b"") if a.is_("PUT") else r
@lie
def put_conflict(w): return lambda a,r: problem(409,"segment_conflict") if a.is_("PUT") else r
@lie
def put_500(w): return lambda a,r: problem(500,"server_error") if a.is_("PUT") else r
@lie
def vault_unknown(w): return lambda a,r: problem(404,"vault_unknown")
@lie
def vault_unknown_log(w): return lambda a,r: problem(404,"vault_unknown") if a.is_("GET","/logs") else r

@pytest.mark.parametrize("name",list(LIES))
def test_lie(server,tmp_path,name):
    w=World.begin(server,tmp_path)
    before=w.files()
    lie=LIES[name](w)
    out=""
    with server.lying(lie):
        try:
            rep=w.one.sync(); out="report "+str(codes(rep))
        except MemsealError as e: out=f"{type(e).__name__} {e.code!r} {str(e)[:60]!r}"
        except BaseException as e: out="RAW "+repr(e)[:100]+traceback.format_exc()[-300:]
    after=w.files()
    bad=[k for k in before if not after.get(k,b"").startswith(before[k]) and k.startswith("logs")]
    c=contents(w.one)
    heal=""
    try:
        for v in (w.one,w.two,w.one,w.two): rep=v.sync(); heal+=str(codes(rep))
    except Exception as e: heal+="HEALFAIL "+repr(e)
    w.one.remember("later of one",source="test"); w.two.remember("later of two",source="test")
    try:
        for v in (w.one,w.two,w.one,w.two): rep=v.sync(); heal+=str(codes(rep))
    except Exception as e: heal+="HEALFAIL2 "+repr(e)
    same=w.one.state_digest()==w.two.state_digest() and len(contents(w.one))==6
    print(f"\n{name}: {out} | lost:{bad} | {c if len(c)not in(3,4) else len(c)} | heal {heal} {'OK' if same else 'NOT HEALED '+str(len(contents(w.one)))+str(len(contents(w.two)))}")
    w.close()
