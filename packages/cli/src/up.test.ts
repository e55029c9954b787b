/** What a person at the terminal sees of `tenon`: addresses, endings, errors, help. */
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { ExoscaleClient, HttpsTransport } from '@tenon/provider-exoscale'
import { Secret, SystemClock } from '@tenon/runtime'
import { exoscale } from './providers.ts'
import {
  controllerSettings,
  cpuMs,
  eventually,
  interrupted,
  kubectl,
  kubectlOut,
  objectsOf,
  runShell,
  runTenon,
  startCluster,
  startTenon,
  temporaryDirectory,
  type TenonProcess,
} from './testing/tenon-process.test-support.ts'

/**
 * The command fails with exactly one line on stderr, and says nothing else. A controller that cannot start ends
 * with exit code 2 (operations.md 2), everything else with 1.
 */
async function refused(
  t: TestContext,
  cwd: string,
  args: readonly string[],
  line: RegExp,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { code, out, err } = await runTenon(t, cwd, args, env)
  assert.match(err, line)
  assert.equal(err.trimEnd().split('\n').length, 1, err)
  assert.equal(out, '')
  assert.equal(code, args[0] === 'controller' ? 2 : 1)
}

const onFreePorts = ['--port', '0', '--api-port', '0']

test('up tells within 10 s of processor time where everything is, and SIGINT ends it within 2 s with exit code 130', async (t) => {
  const cwd = await temporaryDirectory(t)
  const up = await startCluster(t, cwd, 'up', '--no-apply')
  // Wall time depends on what else the host does.
  const startMs = await cpuMs(up.child.pid)
  assert.ok(startMs < 10_000, `it took ${startMs} ms of processor time`)
  assert.match(up.out(), /^Kubernetes API +https:\/\/127\.0\.0\.1:\d+$/m)
  assert.match(up.out(), /^kubeconfig +\.tenon\/kubeconfig /m)
  assert.match(up.out(), /^simulated Exoscale +http:\/\/127\.0\.0\.1:\d+\/v2$/m)
  assert.match(await kubectlOut(cwd, ['get', 'nodepools', '-A'], ''), /^$/)
  const { ended, tookMs } = await interrupted(up)
  assert.deepEqual(ended, { code: 130, signal: null })
  assert.ok(tookMs < 2000, `it took ${tookMs} ms`)
  assert.equal(up.err(), '')
})

test('PGE-15 a second start in one directory has a kubeconfig of its own, and leaves that of the first alone', async (t) => {
  const cwd = await temporaryDirectory(t)
  const first = await startCluster(t, cwd, 'up', '--no-apply')
  const kubeconfig = await readFile(join(cwd, '.tenon/kubeconfig'), 'utf8')
  const second = await startCluster(t, cwd, 'up', '--no-apply')
  assert.match(
    second.err(),
    /^note: process \d+ has a cluster in \.tenon; the files of this one are in \.tenon\/2$/m,
  )
  assert.match(second.out(), /^kubeconfig +\.tenon\/2\/kubeconfig /m)
  assert.equal(await readFile(join(cwd, '.tenon/kubeconfig'), 'utf8'), kubeconfig)
  const names = (config: string) =>
    kubectlOut(cwd, ['--kubeconfig', config, 'get', 'namespaces', '-o', 'name'], '')
  for (const config of ['.tenon/kubeconfig', '.tenon/2/kubeconfig'])
    assert.match(await names(config), /namespace\/kube-system/)
  const versions = JSON.parse(await kubectlOut(cwd, ['version', '-o', 'json'], '')) as {
    readonly serverVersion: { readonly gitVersion: string }
  }
  assert.equal(versions.serverVersion.gitVersion, 'v1.36.0', 'PGE-17 the version that is imitated')
  await interrupted(second)
  assert.match(await names('.tenon/kubeconfig'), /namespace\/kube-system/)
  const third = await startCluster(t, cwd, 'up', '--no-apply')
  assert.match(third.out(), /^kubeconfig +\.tenon\/2\/kubeconfig /m, 'the folder of the second is free again')
  await Promise.all([first.end('SIGKILL'), third.end('SIGKILL')])
  const fourth = await startCluster(t, cwd, 'up', '--no-apply')
  assert.match(
    fourth.out(),
    /^kubeconfig +\.tenon\/kubeconfig /m,
    'what a killed process left is no obstacle',
  )
})

test('PGE-15 a data directory that another process uses is refused by name', async (t) => {
  const cwd = await temporaryDirectory(t)
  const first = await startCluster(t, cwd, 'up', '--no-apply', '--data-dir', 'data')
  const { code, err } = await runTenon(t, cwd, ['up', ...onFreePorts, '--data-dir', 'data'])
  assert.equal(code, 1)
  assert.match(
    err,
    new RegExp(
      `^error: data directory .*data: process ${first.child.pid} uses it; choose another with --data-dir$`,
      'm',
    ),
  )
})

test('SIGINT ends up within 2 s while clients watch and instances boot', async (t) => {
  const cwd = await temporaryDirectory(t)
  const up = await startCluster(t, cwd, 'up')
  const watch = kubectl(cwd, ['get', 'pods', '-w'])
  await eventually(
    () => /nodeclaims starting [1-9]/.test(up.out()) || undefined,
    () => `a claim starts: ${up.out()}`,
  )
  const { ended, tookMs } = await interrupted(up)
  assert.deepEqual(ended, { code: 130, signal: null })
  assert.ok(tookMs < 2000, `it took ${tookMs} ms`)
  await watch
})

test('a taken port is one clear line', async (t) => {
  const cwd = await temporaryDirectory(t)
  const taken = createServer()
  await new Promise<void>((resolve) => {
    taken.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => taken.close())
  const port = String((taken.address() as AddressInfo).port)
  for (const command of ['up', 'devcluster']) {
    await refused(
      t,
      cwd,
      [command, '--port', '0', '--api-port', port],
      new RegExp(
        `^error: Kubernetes API: port ${port} on 127.0.0.1 is already in use; choose another with --api-port`,
      ),
    )
    await refused(
      t,
      cwd,
      [command, '--port', port, '--api-port', '0'],
      new RegExp(
        `^error: simulated Exoscale: port ${port} on 127.0.0.1 is already in use; choose another with --port`,
      ),
    )
  }
})

test('where the usual ports are taken, free ones are, and it is said', async (t) => {
  const cwd = await temporaryDirectory(t)
  for (const port of [16_443, 16_080]) {
    const holder = createServer()
    // Another process of this host may hold it already, which serves as well.
    await new Promise<void>((resolve) => {
      holder.once('error', () => resolve())
      holder.listen(port, '127.0.0.1', resolve)
    })
    t.after(() => holder.close())
  }
  const up = startTenon(t, cwd, ['devcluster'])
  const told = await eventually(
    () => /^Kubernetes API +https:\/\/127\.0\.0\.1:(\d+)$/m.exec(up.out()) ?? undefined,
    () => `the address of the API: ${up.out()}${up.err()}`,
  )
  assert.notEqual(told[1], '16443')
  const note = `note: port 16443 is in use; the Kubernetes API listens on port ${told[1]} (choose with --api-port)`
  assert.ok(up.err().includes(note), up.err())
  assert.match(
    up.err(),
    /^note: port 16080 is in use; the simulated Exoscale listens on port \d+ \(choose with --port\)$/m,
  )
  assert.match(await kubectlOut(cwd, ['get', 'namespaces', '-o', 'name'], ''), /namespace\/default/)
})

test('what a manifest asks for and has no effect is told', async (t) => {
  const cwd = await temporaryDirectory(t)
  const policy = [
    'apiVersion: networking.k8s.io/v1',
    'kind: NetworkPolicy',
    'metadata:',
    '  name: deny-all',
    'spec:',
    '  podSelector: {}',
  ].join('\n')
  await writeFile(join(cwd, 'policy.yaml'), policy)
  const up = await startCluster(t, cwd, 'devcluster', '-f', 'policy.yaml')
  assert.match(
    up.err(),
    /^warning: policy\.yaml[^ ]*: NetworkPolicy deny-all: NetworkPolicy has no effect on the embedded cluster/m,
  )
})

test('a bad manifest is one clear line that names the place and the reason', async (t) => {
  const cwd = await temporaryDirectory(t)
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['broken.yaml', 'kind: Pod\n  metadata: [', /^error: broken\.yaml:\d+: not valid YAML: /],
    ['text.yaml', 'just text', /^error: text\.yaml:1: not a Kubernetes object/],
    [
      'kindless.yaml',
      'apiVersion: v1\nmetadata: {name: a}',
      /^error: kindless\.yaml:1: field kind is missing/,
    ],
    [
      'unknown.yaml',
      'apiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: a}',
      /^error: unknown\.yaml:1: no kind Gizmo in example\.com\/v1; apply its CustomResourceDefinition first/,
    ],
    [
      'field.yaml',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatum: {}',
      /^error: field\.yaml:1: ConfigMap a: .*unknown field.*datum/,
    ],
    [
      'value.yaml',
      'apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {weight: 1000, template: {spec: {nodeClassRef: {group: a.b, kind: C, name: d}, requirements: []}}}',
      /^error: value\.yaml:1: NodePool a: .*spec\.weight/,
    ],
  ]
  for (const [name, text, line] of cases) {
    await writeFile(join(cwd, name), text)
    await refused(t, cwd, ['up', ...onFreePorts, '-f', name], line)
  }
})

test('a missing file and an empty directory are one clear line', async (t) => {
  const cwd = await temporaryDirectory(t)
  await mkdir(join(cwd, 'empty'))
  await refused(
    t,
    cwd,
    ['up', '-f', 'nowhere.yaml'],
    /^error: cannot read nowhere\.yaml: no such file or directory/,
  )
  await refused(
    t,
    cwd,
    ['up', '-f', 'empty'],
    /^error: directory empty contains no \.yaml, \.yml or \.json file/,
  )
})

test('a data directory that cannot be used is one clear line', async (t) => {
  const cwd = await temporaryDirectory(t)
  await writeFile(join(cwd, 'file'), '')
  await refused(t, cwd, ['up', ...onFreePorts, '--data-dir', 'file'], /^error: data directory .*file: /)
})

test('usage errors are one line and suggest the nearest word', async (t) => {
  const cwd = await temporaryDirectory(t)
  await refused(t, cwd, ['upp'], /^error: unknown command 'upp' \(Did you mean up\?\)/)
  await refused(t, cwd, ['up', '--prot', '1'], /^error: unknown option '--prot' \(Did you mean --port\?\)/)
  await refused(t, cwd, ['up', '--port', '70000'], /--port .*Use a port from 0 to 65535/)
  await refused(t, cwd, ['up', '--boot-delay', '5'], /--boot-delay .*Use a duration such as 2s or 1m30s/)
  await refused(t, cwd, ['up', '--kubernetes-version', '1.12'], /Use a version from 1\.33 to 1\.37/)
  await refused(t, cwd, ['controller'], /^error: set the cloud provider: --provider=/)
  await refused(
    t,
    cwd,
    ['controller', '--provider', 'ovh'],
    /^error: --provider=ovh: give exoscale, clever-cloud, cluster-api or kwok/,
  )
})

test('a controller without a cluster or with wrong settings says so in one line', async (t) => {
  const cwd = await temporaryDirectory(t)
  const controller = ['controller', '--provider', 'exoscale', '--disable-leader-election']
  await refused(t, cwd, [...controller, '--kubeconfig', 'nowhere'], /^error: .*nowhere/)
  await startCluster(t, cwd, 'devcluster')
  const ready = [...controller, '--kubeconfig', '.tenon/kubeconfig']
  await refused(t, cwd, ready, /^error: .*EXOSCALE_/)
  const settings = await controllerSettings(cwd)
  await refused(
    t,
    cwd,
    controller,
    /^error: Exoscale: EXOSCALE_ZONE is "de-mars-1", which is not one of the zones /,
    {
      ...settings,
      EXOSCALE_ZONE: 'de-mars-1',
    },
  )
  await refused(
    t,
    cwd,
    [...ready, '--batch-max-duration', 'soon'],
    /^error: --batch-max-duration=soon: use a duration/,
  )
})

/** Ids of the instances that run in the cloud of a `tenon up`. */
async function cloudInstances(up: TenonProcess): Promise<string[]> {
  const url = /^simulated Exoscale +(http:\S+)\/v2$/m.exec(up.out())?.[1] ?? ''
  const settings = (await exoscale.simulator?.())?.settings({ apiUrl: '', kubeconfig: '' })
  const cloud = new ExoscaleClient({
    transport: new HttpsTransport(url, {}),
    basePath: '/v2',
    credentials: {
      key: settings?.['EXOSCALE_API_KEY'] ?? '',
      secret: new Secret(settings?.['EXOSCALE_API_SECRET'] ?? ''),
    },
    clock: new SystemClock(),
    userAgent: 'tenon-test',
  })
  return (await cloud.listInstances()).flatMap(({ id, state }) => (state === 'running' ? [id] : []))
}

for (const [how, signal] of [
  ['stopped', 'SIGINT'],
  ['killed', 'SIGKILL'],
] as const) {
  test(`RPT section 11: a cluster with a data directory that is ${how} and started again goes on with its nodes, instances and pods`, async (t) => {
    const cwd = await temporaryDirectory(t)
    const start = () => startCluster(t, cwd, 'up', '--data-dir', 'data', '--boot-delay', '1s')
    let last = await start()
    const picture = async () => {
      const objects = await objectsOf<Pod | Node | NodeClaim>(cwd, 'pods,nodes,nodeclaims')
      const pods = objects.filter((each): each is Pod => each.kind === 'Pod')
      const nodes = objects.filter((each): each is Node => each.kind === 'Node')
      const claims = objects.filter((each): each is NodeClaim => each.kind === 'NodeClaim')
      const instances = await cloudInstances(last)
      return {
        pods: pods
          .filter(({ status }) => status?.phase === 'Running')
          .map(({ metadata, spec }) => `${metadata.uid} ${spec.nodeName}`)
          .toSorted(),
        nodes: nodes.map(({ metadata, spec }) => `${metadata.uid} ${spec?.providerID}`).toSorted(),
        claims: claims.map(({ metadata, status }) => `${metadata.uid} ${status?.providerID}`).toSorted(),
        instances: instances.toSorted(),
      }
    }
    const settled = () =>
      eventually(
        async () => {
          const now = await picture()
          const { length } = now.nodes
          const isSettled =
            now.pods.length === 20 && length === now.claims.length && length === now.instances.length
          return isSettled ? now : undefined
        },
        () => `20 pods run:\n${last.out()}${last.err()}`,
      )
    await kubectlOut(cwd, ['create', 'configmap', 'kept', '--from-literal=a=1'])
    const before = await settled()
    // Consolidation finds cheaper nodes for these pods soon after a start.
    await kubectlOut(cwd, ['annotate', 'nodes', '--all', 'karpenter.sh/do-not-disrupt=true'])
    await last.end(signal)

    last = await start()
    assert.equal(await kubectlOut(cwd, ['get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}']), '1')
    // Long enough for a node to be found lost, or for another to be launched.
    for (let look = 0; look < 10; look++) {
      assert.deepEqual(await picture(), before, `look ${look}`)
      await sleep(1000)
    }
    await kubectlOut(cwd, ['delete', 'deployment,nodepool', '--all'])
    await eventually(
      async () => (await cloudInstances(last)).length === 0 || undefined,
      () => `kept nodes go like others:\n${last.out()}${last.err()}`,
    )
  })
}

test('a closed pipe is no error', async (t) => {
  const cwd = await temporaryDirectory(t)
  assert.deepEqual(await runShell(cwd, 'set -o pipefail; tenon crds | head -1'), {
    code: 0,
    signal: null,
    out: '---\n',
    err: '',
  })
})

test('the printed CustomResourceDefinitions apply with kubectl, twice', async (t) => {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster')
  const { out, code, err } = await runTenon(t, cwd, ['crds'])
  assert.deepEqual({ code, err }, { code: 0, err: '' })
  await kubectlOut(cwd, ['apply', '--server-side', '-f', '-'], out)
  await kubectlOut(cwd, ['apply', '--server-side', '-f', '-'], out)
  await kubectlOut(cwd, ['wait', '--for=condition=Established', '--timeout=5s', 'crd', '--all'])
  await kubectlOut(cwd, ['get', 'nodepools,nodeclaims,exoscalenodeclasses,kwoknodeclasses'])
})

test('version -o json is JSON with the version', async (t) => {
  const cwd = await temporaryDirectory(t)
  const { out, code } = await runTenon(t, cwd, ['version', '-o', 'json'])
  assert.equal(code, 0)
  const { clientVersion } = JSON.parse(out) as { clientVersion: { gitVersion: string } }
  assert.match(clientVersion.gitVersion, /^v\d+\.\d+\.\d+/)
  assert.equal((await runTenon(t, cwd, ['version'])).out, `${clientVersion.gitVersion}\n`)
})

test('the help of every command shows examples on stdout', async (t) => {
  const cwd = await temporaryDirectory(t)
  const { out: overview } = await runTenon(t, cwd, ['--help'])
  const [listed = ''] = overview.split('Commands:\n')[1]?.split('\n\n') ?? []
  const named = [...listed.matchAll(/^ {2}([a-z]+)(?: .*)?$/gm)].map(([, name = '']) => name)
  const commands = named.filter((name) => name !== 'help')
  for (const name of ['up', 'controller', 'validate', 'preflight', 'simulate', 'test', 'version'])
    assert.ok(commands.includes(name), name)
  for (const command of commands) {
    const { out, err, code } = await runTenon(t, cwd, [command, '--help'])
    assert.match(out, new RegExp(`\nExamples:\n.*tenon ${command}`, 's'))
    assert.deepEqual({ err, code }, { err: '', code: 0 })
  }
})
