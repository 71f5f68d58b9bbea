// What a function can and cannot do from inside its sandbox, proven from inside: each attempt with the exact result.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { DeleteFunctionCommand, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda'
import { invoke, IS_ROOT, sleep, startKiln, waitUntil, zip } from '../lib/kiln.mjs'
import { processesNamed, processesOf, ticksOf } from '../lib/processes.mjs'
import { createProgram, createPython, invokeToEnd, program, PYTHON, python } from '../lib/programs.mjs'

const skip = IS_ROOT ? false : 'sandboxes are isolated in full only when Kiln runs as root (see rootless.test.mjs)'
let names = 0
const marker = () => `stay-${process.pid}-${names++}`

// Four functions, so that there are four environments at once.
const FOUR = ['north', 'east', 'south', 'west']

const NAMESPACES = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup']
const FORBIDDEN_CALLS = {
  'mount tmpfs': 'EPERM',
  'mount proc': 'EPERM',
  'remount /': 'EPERM',
  'umount /tmp': 'EPERM',
  pivot_root: 'EPERM',
  chroot: 'EPERM',
  fsopen: 'EPERM',
  open_tree: 'EPERM',
  move_mount: 'EPERM',
  mount_setattr: 'EPERM',
  swapon: 'EPERM',
  ...Object.fromEntries(
    NAMESPACES.flatMap((name) => ['unshare', 'clone', 'setns'].map((call) => [`${call} ${name}`, 'EPERM'])),
  ),
  clone3: 'ENOSYS',
  'setuid 0': 'EPERM',
  'setgid 0': 'EPERM',
  'setresuid 0': 'EPERM',
  'setgroups 0': 'EPERM',
  capset: 'EPERM',
  'ambient capability': 'EPERM',
  'clear no_new_privs': 'EINVAL',
  chown: 'EPERM',
  mknod: 'EPERM',
  'ptrace init': 'EPERM',
  'seize init': 'EPERM',
  'read init': 'EPERM',
  'write init': 'EPERM',
  'pidfd_getfd init': 'EPERM',
  'open memory of init': 'EACCES',
  'open root of init': 'EACCES',
  'open directory of init': 'EACCES',
  'open descriptors of init': 'EACCES',
  'open variables of init': 'EACCES',
  kcmp: 'EPERM',
  'raise priority': 'EACCES',
  'real-time priority': 'EPERM',
  bpf: 'EPERM',
  perf_event_open: 'EPERM',
  keyctl: 'EPERM',
  add_key: 'EPERM',
  request_key: 'EPERM',
  reboot: 'EPERM',
  kexec_load: 'EPERM',
  init_module: 'EPERM',
  delete_module: 'EPERM',
  syslog: 'EPERM',
  settimeofday: 'EPERM',
  sethostname: 'EPERM',
  setdomainname: 'EPERM',
  userfaultfd: 'EPERM',
  io_uring_setup: 'ENOSYS',
  open_by_handle_at: 'EPERM',
  iopl: 'EPERM',
  acct: 'EPERM',
  TIOCSTI: 'EPERM',
  'open /dev/mem': 'ENOENT',
  'open /dev/kmsg': 'ENOENT',
  'raw socket': 'EPERM',
  'packet socket': 'EPERM',
}

// The names of what a request to a Runtime API that is not one's own comes to, and the answer of one's own.
const ASK = `
def ask(host, port):
    with socket.socket() as connection:
        connection.settimeout(2)
        try:
            connection.connect((host, port))
            connection.sendall(b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            return connection.recv(100).decode() or "closed"
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))
`

for (const network of ['host', 'none']) {
  describe(`--network ${network}`, { skip }, () => {
    let kiln
    const inside = (code) => python(kiln.lambda, 'inside', code)
    const inFour = (code) => Promise.all(FOUR.map((name) => python(kiln.lambda, name, code)))

    before(async () => {
      kiln = await startKiln({ args: ['--network', network], env: { KILN_TEST_SECRET: 'of the daemon' } })
      await createPython(kiln.lambda, 'inside', { MemorySize: 1769 })
      await createProgram(kiln.lambda, 'intruder', 'intruder', { MemorySize: 1769 })
      await Promise.all(FOUR.map((name) => createPython(kiln.lambda, name)))
    })
    after(() => kiln.stop())

    test('no process but its own and init is to be seen', async () => {
      const seen = await inside(`
result = {pid: read(f"/proc/{pid}/comm").strip() for pid in os.listdir("/proc") if pid.isdigit()}`)
      const own = await inside('result = os.getpid()')
      assert.deepEqual(seen, { 1: 'kiln-init', [own]: PYTHON })
    })

    test('nothing outside /tmp and /dev/shm can be written', async () => {
      const made = await inside(`
places = ["/", "/var/task", "/var/runtime", "/opt", "/usr", "/usr/bin", "/etc", "/bin", "/lib", "/dev", "/sys", "/var",
          "/var/lib", "/run", "/mnt", "/tmp", "/dev/shm"]
result = {place: attempt(lambda: open(os.path.join(place, "made"), "w")) for place in places}`)
      for (const [place, outcome] of Object.entries(made))
        assert.equal(outcome, place === '/tmp' || place === '/dev/shm' ? 'OK' : 'EROFS', place)
      const changed = await inside(`
files = ["/var/task/index.py", "/var/runtime/bootstrap.py", "/etc/passwd", "/etc/hosts", "/etc/resolv.conf",
         "/usr/bin/env", "/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches"]
result = {file: attempt(lambda: open(file, "w")) for file in files}
result["chmod"] = attempt(lambda: os.chmod("/var/task/index.py", 0o777))
result["unlink"] = attempt(lambda: os.unlink("/var/task/index.py"))
result["mkdir"] = attempt(lambda: os.mkdir("/var/task/made"))
result["rename"] = attempt(lambda: os.rename("/var/task/index.py", "/var/task/other.py"))`)
      assert.deepEqual(new Set(Object.values(changed)), new Set(['EROFS']))
      const kernel = await inside(`
files = ["/proc/sysrq-trigger", "/proc/kcore", "/proc/1/oom_score_adj", "/proc/1/comm"]
result = {file: attempt(lambda: open(file, "w")) for file in files}`)
      assert.ok(Object.values(kernel).every((outcome) => ['ENOENT', 'EACCES', 'EPERM'].includes(outcome)), JSON.stringify(kernel))
    })

    test('the data directory, homes and secrets of the host are not there', async () => {
      const listed = await inside(`
places = ["/root", "/home", "/srv", "/boot", "/media", ${JSON.stringify(kiln.dataDir)},
          ${JSON.stringify(join(kiln.dataDir, 'code'))}, "/var/log", "/var/spool", "/run/systemd"]
result = {place: attempt(lambda: os.listdir(place)) for place in places}
for file in ["/etc/shadow", "/etc/ssh", "/etc/machine-id", "/etc/sudoers", ${JSON.stringify(join(kiln.dataDir, 'kiln.db'))}]:
    result[file] = attempt(lambda: open(file))`)
      for (const [place, outcome] of Object.entries(listed)) assert.equal(outcome, 'ENOENT', place)
      assert.deepEqual(
        await inside('result = [line.split(":")[0] for line in read("/etc/passwd").split()]'),
        ['root', 'nobody', 'sbx_user1051'],
      )
      assert.equal(await inside('result = "".join(read(f"/proc/{name}") for name in ["keys", "kmsg", "kallsyms"])'), '')
      assert.deepEqual(await inside('result = os.listdir("/proc/bus") + os.listdir("/sys") + os.listdir("/mnt")'), [])
      assert.deepEqual(await inside('result = sorted(os.listdir("/"))'), await inside(`
result = sorted(set(os.listdir("/")) & set("bin dev etc lib lib32 lib64 libx32 mnt opt proc run sbin sys tmp usr var".split()))`))
    })

    test('the code of one function is not to be seen by another', async () => {
      await createPython(kiln.lambda, 'neighbour', {
        Code: { ZipFile: zip({ 'index.py': 'def handler(event, context): return 1', 'secret-of-neighbour': 'x' }) },
      })
      await invoke(kiln.lambda, 'neighbour')
      assert.deepEqual(await inside(`result = sorted(os.listdir("/var/task"))`), ['index.py'])
      assert.equal(
        await inside(`
result = [os.path.join(root, name) for top in ["/var", "/tmp", "/opt", "/run", "/mnt"]
          for root, folders, files in os.walk(top) for name in files if name == "secret-of-neighbour"]`).then(String),
        '',
      )
    })

    test('there are no capabilities, and none can be had', async () => {
      const status = await inside(`
fields = dict(line.split(":\\t", 1) for line in read("/proc/self/status").splitlines())
result = {name: fields[name].strip() for name in fields if name.startswith("Cap") or name in ["NoNewPrivs", "Seccomp", "Groups"]}`)
      const none = '0000000000000000'
      assert.deepEqual(status, {
        CapInh: none,
        CapPrm: none,
        CapEff: none,
        CapBnd: none,
        CapAmb: none,
        NoNewPrivs: '1',
        Seccomp: '2',
        Groups: '',
      })
      const ids = await inside('result = [*os.getresuid(), *os.getresgid()]')
      assert.equal(new Set(ids).size, 1)
      assert.notEqual(ids[0], 0)
      assert.deepEqual(
        await inside('result = [attempt(lambda: os.setuid(0)), attempt(lambda: os.setgid(0)), attempt(lambda: os.seteuid(0))]'),
        ['EPERM', 'EPERM', 'EPERM'],
      )
    })

    test('system calls that reach beyond the sandbox are refused, each with its errno', async () => {
      const { payload, functionError } = await invoke(kiln.lambda, 'intruder', { try: 'calls' })
      assert.equal(functionError, undefined)
      assert.deepEqual(payload, FORBIDDEN_CALLS)
    })

    test('a runtime begins with descriptors 0, 1 and 2 and no signal blocked or ignored', async () => {
      const { payload } = await invoke(kiln.lambda, 'intruder', { try: 'inherited' })
      assert.deepEqual(payload, { descriptors: [0, 1, 2], blocked: [], ignored: [] })
      const targets = await inside('result = [os.readlink(f"/proc/self/fd/{fd}") for fd in [0, 1, 2]]')
      assert.equal(targets[0], '/dev/null')
      assert.match(targets[1], /^pipe:\[\d+\]$/)
      assert.equal(targets[2], targets[1])
    })

    test('at most 1,024 processes', async () => {
      const { payload } = await invoke(kiln.lambda, 'intruder', { try: 'forks' })
      assert.equal(payload.error, 'EAGAIN')
      assert.equal(payload.count, 1023) // and the function itself
      const threads = await python(kiln.lambda, 'inside', `
threading.stack_size(65536)
gate = threading.Event()
count = 0
try:
    while count < 5000:
        threading.Thread(target=gate.wait).start()
        count += 1
except RuntimeError as error:
    result = [count, str(error)]
gate.set()`)
      assert.deepEqual(threads, [1023, "can't start new thread"])
    })

    test('at most 1,024 descriptors', async () => {
      const { payload } = await invoke(kiln.lambda, 'intruder', { try: 'files' })
      assert.deepEqual(payload, { highest: 1023, error: 'EMFILE' })
      assert.equal(
        await inside(`
held = []
def fill():
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
result = [attempt(fill), max(held)]
for fd in held: os.close(fd)`).then(String),
        'EMFILE,1023',
      )
      const raised = await inside('result = attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048)))').catch(
        (error) => error.message,
      )
      assert.match(String(raised), /not allowed to raise maximum limit/)
    })

    test('host name, working directory, devices and limits', async () => {
      assert.match(await inside('result = socket.gethostname()'), /^169-254-\d+-\d+$/)
      assert.equal(await inside('result = os.getcwd()'), '/var/task')
      assert.deepEqual(await inside('result = sorted(os.listdir("/dev"))'), [
        ...['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero'],
      ])
      assert.deepEqual(
        await inside(`result = [[name, *resource.getrlimit(getattr(resource, name))]
          for name in ["RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE", "RLIMIT_RTPRIO", "RLIMIT_NICE"]]`),
        [
          ['RLIMIT_NOFILE', 1024, 1024],
          ['RLIMIT_CORE', 0, 0],
          ['RLIMIT_MEMLOCK', 65536, 65536],
          ['RLIMIT_MSGQUEUE', 819200, 819200],
          ['RLIMIT_RTPRIO', 0, 0],
          ['RLIMIT_NICE', 0, 0],
        ],
      )
      assert.equal(await inside('result = set(line.split(":", 2)[2] for line in read("/proc/self/cgroup").split()) == {"/"}'), true)
    })

    test('environment variables are the function\'s own, all of them, and nobody else\'s', async () => {
      await createPython(kiln.lambda, 'first', { Environment: { Variables: { OWN: 'first', TZ: 'Europe/Berlin' } } })
      await createPython(kiln.lambda, 'second', { Environment: { Variables: { OTHER: 'second' } } })
      const code = 'result = dict(os.environ)'
      const [first, second] = await Promise.all(['first', 'second'].map((name) => python(kiln.lambda, name, code)))
      assert.equal(first.OWN, 'first')
      assert.equal(first.TZ, 'Europe/Berlin')
      assert.equal(second.OTHER, 'second')
      const common = [
        ...['AWS_ACCESS_KEY_ID', 'AWS_DEFAULT_REGION', 'AWS_EXECUTION_ENV', 'AWS_LAMBDA_FUNCTION_MEMORY_SIZE'],
        ...['AWS_LAMBDA_FUNCTION_NAME', 'AWS_LAMBDA_FUNCTION_VERSION', 'AWS_LAMBDA_INITIALIZATION_TYPE'],
        ...['AWS_LAMBDA_LOG_GROUP_NAME', 'AWS_LAMBDA_LOG_STREAM_NAME', 'AWS_LAMBDA_RUNTIME_API', 'AWS_REGION'],
        ...['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_XRAY_CONTEXT_MISSING', 'AWS_XRAY_DAEMON_ADDRESS'],
        ...['LAMBDA_RUNTIME_DIR', 'LAMBDA_TASK_ROOT', 'LANG', 'LC_CTYPE', 'LD_LIBRARY_PATH', 'PATH', 'PWD', 'PYTHONPATH'],
        ...['SHLVL', 'TZ', '_AWS_XRAY_DAEMON_ADDRESS', '_AWS_XRAY_DAEMON_PORT', '_HANDLER', '_X_AMZN_TRACE_ID'],
      ]
      // LC_CTYPE is Python's own doing (PEP 538) and depends on the host's locales.
      const sorted = (variables) => Object.keys(variables).filter((name) => name !== 'LC_CTYPE').sort()
      const expected = (own) => [...common, own].filter((name) => name !== 'LC_CTYPE').sort()
      assert.deepEqual(sorted(first), expected('OWN'))
      assert.deepEqual(sorted(second), expected('OTHER'))
      for (const variables of [first, second]) assert.ok(!JSON.stringify(variables).includes('of the daemon'))
    })

    test('every environment has a uid of its own', async () => {
      const seen = await inFour('result = [os.getuid(), socket.gethostname(), os.environ["AWS_LAMBDA_RUNTIME_API"]]')
      const uids = new Set(seen.map(([uid]) => uid))
      assert.equal(uids.size, 4)
      assert.ok(!uids.has(0) && !uids.has(65534) && [...uids].every((uid) => uid > 65536))
      assert.equal(new Set(seen.map(([, hostname]) => hostname)).size, 4)
      const apis = new Set(seen.map(([, , api]) => api))
      if (network === 'host') assert.equal(apis.size, 4)
      else assert.deepEqual([...apis], ['169.254.100.1:9001'])
    })

    test('a setuid program in the package has no effect', async () => {
      const files = { 'index.py': 'import subprocess\ndef handler(e, c): return subprocess.check_output(["/var/task/identity"]).decode()' }
      files.identity = { content: program('identity'), mode: 0o6755 }
      await createPython(kiln.lambda, 'setuid-package', { Code: { ZipFile: zip(files) } })
      const { payload } = await invoke(kiln.lambda, 'setuid-package')
      assert.match(payload, /^(\d+) \1 \d+ \d+\n$/)
      assert.doesNotMatch(payload, /\b0\b/)
    })

    test('memory: more than MemorySize ends the runtime, the next invoke is fine, siblings notice nothing', async () => {
      const siblings = await inFour('STATE["kept"] = os.getpid(); result = [os.getuid(), STATE["kept"]]')
      await createPython(kiln.lambda, 'greedy', { MemorySize: 128 })
      const exclusive = 'x = bytearray(400 << 20)'
      const shared = 'import mmap; m = mmap.mmap(-1, 400 << 20)\nfor i in range(400): m.write(b"x" * 1048576)'
      const answer = await invokeToEnd(kiln.lambda, 'greedy', { code: network === 'host' ? exclusive : shared })
      assert.equal(answer.functionError, 'Unhandled')
      assert.equal(answer.payload.errorType, 'Runtime.ExitError')
      assert.match(
        answer.payload.errorMessage,
        /^RequestId: [0-9a-f-]{36} Error: Runtime exited with error: signal: killed$/,
      )
      assert.equal(await python(kiln.lambda, 'greedy', 'result = STATE["invokes"]'), 1)
      assert.deepEqual(await inFour('result = [os.getuid(), STATE["kept"]]'), siblings)
    })

    test('memory in /dev/shm counts as the function\'s', async () => {
      await createPython(kiln.lambda, 'sharer', { MemorySize: 128 })
      const code = `
with open("/dev/shm/x", "wb", buffering=0) as file:
    for i in range(90): file.write(b"x" * 1048576)
result = os.stat("/dev/shm/x").st_size >> 20`
      assert.equal(await python(kiln.lambda, 'sharer', code), 90)
      const answer = await invokeToEnd(kiln.lambda, 'sharer', { code: 'x = bytearray(90 << 20)' })
      assert.equal(answer.payload.errorType, 'Runtime.ExitError')
      assert.match(answer.payload.errorMessage, /signal: killed$/)
      assert.deepEqual(await python(kiln.lambda, 'sharer', 'result = os.listdir("/dev/shm")'), [])
    })

    test('/tmp holds EphemeralStorage and no more, and does not count as memory', async () => {
      await createPython(kiln.lambda, 'storer', { MemorySize: 128, EphemeralStorage: { Size: 512 } })
      const fill = (mebibytes, name) => `
def fill():
    global written
    with open("/tmp/${name}", "wb", buffering=0) as file:
        for i in range(${mebibytes}):
            written += file.write(b"x" * 1048576)
written = 0
result = [attempt(fill), written >> 20]`
      assert.deepEqual(await python(kiln.lambda, 'storer', fill(300, 'first')), ['OK', 300])
      assert.equal(await python(kiln.lambda, 'storer', 'x = bytearray(20 << 20); result = STATE["invokes"]'), 2)
      assert.deepEqual(await python(kiln.lambda, 'storer', fill(300, 'second')), ['ENOSPC', 212])
      assert.deepEqual(await python(kiln.lambda, 'storer', 'result = [sorted(os.listdir("/tmp")), STATE["invokes"]]'), [
        ['first', 'second'],
        4,
      ])
      assert.equal(await python(kiln.lambda, 'storer', 'os.unlink("/tmp/first"); os.unlink("/tmp/second"); result = attempt(lambda: open("/tmp/third", "w"))'), 'OK')
    })

    test('the Runtime API of another environment cannot be spoken to', async () => {
      const others = await inFour('STATE["asked"] = True; result = os.environ["AWS_LAMBDA_RUNTIME_API"]')
      const own = await inside('result = os.environ["AWS_LAMBDA_RUNTIME_API"]')
      const addresses = network === 'host' ? others : others.map((_, i) => `169.254.100.${i + 2}:9001`)
      const outcomes = await inside(`${ASK}
result = [ask(host, int(port)) for host, port in [address.split(":") for address in ${JSON.stringify(addresses)}]]`)
      assert.ok(!addresses.includes(own))
      for (const outcome of outcomes) {
        if (network === 'host') assert.match(outcome, /^(closed|ECONNRESET|HTTP\/1\.1 403 .*)/)
        else assert.equal(outcome, 'ENETUNREACH')
      }
      // The environments asked are unharmed.
      assert.deepEqual(await inFour('result = STATE.get("asked")'), [true, true, true, true])
    })

    test('every listening port of the host\'s loopback, tried from inside', async () => {
      // What listens is read from outside; each is asked for an invocation from inside.
      const ports = [...readFileSync('/proc/net/tcp', 'utf8').matchAll(/^ *\d+: 0100007F:([0-9A-F]{4}) \S+ 0A/gm)].map(([, port]) => parseInt(port, 16))
      assert.ok(ports.includes(kiln.port))
      const own = Number((await inside('result = os.environ["AWS_LAMBDA_RUNTIME_API"]')).split(':')[1])
      const outcomes = await inside(`${ASK}
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(50) as pool:
    ports = ${JSON.stringify(ports.filter((port) => port !== own))}
    result = dict(zip(ports, pool.map(lambda port: ask("127.0.0.1", port), ports)))`)
      // Sockets made ahead, of no environment yet, take a connection into their queue and answer nothing: "timed out".
      for (const [port, outcome] of Object.entries(outcomes)) {
        if (network === 'none') assert.equal(outcome, 'ECONNREFUSED', port)
        else assert.doesNotMatch(outcome, /Lambda-Runtime-Aws-Request-Id|^HTTP\/1\.1 200/i, port)
      }
    })

    if (network === 'none') {
      test('there is no network but loopback', async () => {
        assert.deepEqual(await inside('result = [name for index, name in socket.if_nameindex()]'), ['lo'])
        const outcomes = await inside(`
def reach(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as connection:
        connection.settimeout(5)
        connection.connect((address, 80))
result = {address: attempt(lambda: reach(address)) for address in ["192.0.2.1", "10.0.0.1", "169.254.169.254", "2001:db8::1"]}`)
        assert.deepEqual(outcomes, {
          '192.0.2.1': 'ENETUNREACH',
          '10.0.0.1': 'ENETUNREACH',
          '169.254.169.254': 'ENETUNREACH',
          '2001:db8::1': 'ENETUNREACH',
        })
      })

      test('abstract unix sockets of the host cannot be reached', async () => {
        const { createServer } = await import('node:net')
        const server = createServer((socket) => socket.end('reached'))
        const name = `kiln-test-${process.pid}`
        await new Promise((done) => server.listen(`\0${name}`, done))
        try {
          assert.equal(
            await inside(`
with socket.socket(socket.AF_UNIX) as connection:
    result = attempt(lambda: connection.connect("\\0${name}"))`),
            'ECONNREFUSED',
          )
        } finally {
          server.close()
        }
      })
    }

    // --- outliving ---

    async function leaves(name, kind, more = {}) {
      const word = marker().slice(-15)
      const answer = invoke(kiln.lambda, name, { try: kind, name: word, ...more })
      return { word, answer }
    }

    async function isGone(word) {
      await waitUntil(() => processesNamed(word).length === 0, { what: `every process ${word} being gone` })
    }

    for (const kind of ['daemon', 'chain']) {
      test(`a ${kind} of its own session is gone after a timeout`, async () => {
        const name = `timeout-${kind}`
        await createProgram(kiln.lambda, name, 'intruder', { Timeout: 2 })
        const { word, answer } = await leaves(name, kind, { hang: 1 })
        // No process of a chain lives long enough for a busy machine to see it.
        if (kind === 'daemon') await waitUntil(() => processesNamed(word).length > 0, { what: 'the process being there' })
        assert.equal((await answer).payload.errorType, 'Sandbox.Timedout')
        await isGone(word)
        assert.equal((await invoke(kiln.lambda, name)).functionError, undefined)
        await sleep(300)
        assert.deepEqual(processesNamed(word), [])
      })

      test(`a ${kind} of its own session is gone after delete-function`, async () => {
        const name = `delete-${kind}`
        await createProgram(kiln.lambda, name, 'intruder')
        const { word, answer } = await leaves(name, kind)
        assert.equal((await answer).functionError, undefined)
        assert.ok(kind === 'chain' || processesNamed(word).length === 1)
        await kiln.lambda.send(new DeleteFunctionCommand({ FunctionName: name }))
        await isGone(word)
      })
    }

    test('a daemon of its own session is gone after its version was replaced', async () => {
      await createProgram(kiln.lambda, 'replaced', 'intruder')
      const { word, answer } = await leaves('replaced', 'daemon')
      await answer
      assert.equal(processesNamed(word).length, 1)
      await kiln.lambda.send(
        new UpdateFunctionCodeCommand({ FunctionName: 'replaced', ZipFile: zip({ bootstrap: program('probe') }) }),
      )
      await isGone(word)
    })

    test('a daemon is gone after reclaiming, and after the end of Kiln', async (t) => {
      const other = await startKiln({ args: ['--network', network, '--idle-timeout', '1'] })
      let stopped = false
      t.after(() => stopped || other.stop())
      await createProgram(other.lambda, 'reclaimed', 'intruder')
      const first = marker().slice(-15)
      await invoke(other.lambda, 'reclaimed', { try: 'daemon', name: first })
      await isGone(first)
      await waitUntil(async () => (await (await other.fetch('/_kiln/health')).json()).environments === 0, { what: 'no environment being left' })
      const second = marker().slice(-15)
      await invoke(other.lambda, 'reclaimed', { try: 'daemon', name: second })
      await other.stop()
      stopped = true
      assert.deepEqual(processesNamed(second), [])
    })

    // --- freezing ---

    test('an idle environment is frozen: it uses no CPU and its threads make no progress', async () => {
      await createPython(kiln.lambda, 'spinner')
      const uid = await python(kiln.lambda, 'spinner', `
import mmap
file = open("/tmp/progress", "w+b")
file.truncate(8)
STATE["progress"] = mmap.mmap(file.fileno(), 8)
def spin():
    count = 0
    while True:
        count += 1
        STATE["progress"][:] = count.to_bytes(8, "little")
threading.Thread(target=spin, daemon=True).start()
result = os.getuid()`)
      const members = processesOf(uid)
      assert.equal(members.length, 2) // init and the runtime
      const runtime = members.find((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === PYTHON)
      const progress = () => readFileSync(`/proc/${runtime}/root/tmp/progress`).readBigUInt64LE()
      const stands = async () => {
        const before = progress()
        await sleep(200)
        return progress() === before
      }
      await waitUntil(stands, { what: 'the environment being frozen' })
      const [ticks, count] = [ticksOf(members), progress()]
      await sleep(2000)
      assert.equal(ticksOf(members), ticks)
      assert.equal(progress(), count)
      // Thawed for the next invoke, it goes on where it stood.
      const during = await python(kiln.lambda, 'spinner', `
before = int.from_bytes(STATE["progress"][:], "little")
time.sleep(0.5)
result = [before, int.from_bytes(STATE["progress"][:], "little")]`)
      assert.ok(BigInt(during[0]) >= count)
      assert.ok(during[1] > during[0])
      await waitUntil(stands, { what: 'the environment being frozen again' })
    })

    test('nothing of all that has harmed Kiln', async () => {
      assert.equal(await inside('result = 1'), 1)
      assert.equal((await kiln.fetch('/_kiln/health')).status, 200)
    })
  })
}

test('a data directory below /usr, which functions see, is hidden from them', { skip }, async (t) => {
  const parent = mkdtempSync('/usr/local/kiln-test-')
  t.after(() => rmSync(parent, { recursive: true, force: true }))
  chmodSync(parent, 0o755)
  const dataDir = join(parent, 'data')
  const kiln = await startKiln({ dataDir })
  t.after(() => kiln.stop())
  await createPython(kiln.lambda, 'inside')
  const listed = await python(kiln.lambda, 'inside', `result = [os.listdir(${JSON.stringify(parent)}), os.listdir(${JSON.stringify(dataDir)})]`)
  assert.deepEqual(listed, [['data'], []])
  assert.ok(existsSync(join(dataDir, 'kiln.db')))
  assert.equal(statSync(dataDir).mode & 0o777, 0o700)
})

test('a setuid program of the host has no effect inside', { skip }, async (t) => {
  const folder = mkdtempSync('/usr/local/kiln-test-')
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'identity')
  writeFileSync(path, program('identity'))
  chmodSync(folder, 0o755)
  chmodSync(path, 0o6755)
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createPython(kiln.lambda, 'inside')
  const [uid, gid, output] = await python(kiln.lambda, 'inside', `result = [os.getuid(), os.getgid(), subprocess.check_output([${JSON.stringify(path)}]).decode()]`)
  assert.equal(output, `${uid} ${uid} ${gid} ${gid}\n`)
})
