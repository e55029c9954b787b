/** The controller may die at any moment of a scale-up: two processes, real sockets, SIGKILL. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { NodeClaim, Pod } from '@tenon/api'
import { ExoscaleClient, HttpsTransport } from '@tenon/provider-exoscale'
import { integerBetween, Secret, SeededRandom, SystemClock } from '@tenon/runtime'
import {
  controllerSettings,
  eventually,
  kubectlOut,
  objectsOf,
  runTenon,
  startCluster,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

const deaths = 10
const podsPerLife = 2
/** Bounds of a controller's life in milliseconds, from the start of its process. */
const lifeMs = { min: 400, max: 1800 }
const claimLabel = 'exoscale.com/node-claim'

/** Every pod needs a node of its own: no two fit on the only type allowed. */
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
      requirements:
        - { key: node.kubernetes.io/instance-type, operator: In, values: [standard.large] }
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 1s
    budgets: [{ nodes: "100%" }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: work, namespace: default }
spec:
  replicas: 0
  selector: { matchLabels: { app: work } }
  template:
    metadata: { labels: { app: work } }
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: app
          image: registry.k8s.io/pause
          resources: { requests: { cpu: 2500m, memory: 1Gi } }
`

type Settings = Readonly<Record<string, string>>

function cloudOf(settings: Settings): ExoscaleClient {
  return new ExoscaleClient({
    transport: new HttpsTransport(settings['EXOSCALE_API_ENDPOINT'] ?? '', {}),
    basePath: '/v2',
    credentials: {
      key: settings['EXOSCALE_API_KEY'] ?? '',
      secret: new Secret(settings['EXOSCALE_API_SECRET'] ?? ''),
    },
    clock: new SystemClock(),
    userAgent: 'tenon-test',
  })
}

/** Looks at the cloud all the time; `launched` are all instances there ever were, by claim. */
function observeLaunches(t: TestContext, cloud: ExoscaleClient): ReadonlyMap<string, Set<string>> {
  const launched = new Map<string, Set<string>>()
  const observe = async () => {
    while (!t.signal.aborted) {
      for (const { id, labels } of await cloud.listInstances(t.signal)) {
        const claim = labels?.[claimLabel] ?? '(none)'
        launched.set(claim, (launched.get(claim) ?? new Set()).add(id))
      }
      await sleep(100, undefined, { signal: t.signal })
    }
  }
  observe().catch((error: unknown) => {
    if (!t.signal.aborted) throw error
  })
  return launched
}

function startController(t: TestContext, cwd: string, settings: Settings) {
  const flags = ['--provider', 'exoscale', '--disable-leader-election', '--batch-idle-duration', '200ms']
  return startTenon(
    t,
    cwd,
    ['controller', ...flags, '--metrics-port', '0', '--health-probe-port', '0'],
    settings,
  )
}

const scale = (cwd: string, replicas: number) =>
  kubectlOut(cwd, ['scale', 'deployment/work', `--replicas=${replicas}`])

test('a controller killed at ten random moments of a scale-up launches every instance once and leaves none over', async (t) => {
  const seed = Number(process.env['TENON_RESTART_SEED'] ?? Math.floor(Math.random() * 1e9))
  t.diagnostic(`seed ${seed}; again with TENON_RESTART_SEED=${seed}`)
  const random = new SeededRandom(seed)
  const startMs = performance.now()
  const seconds = () => ((performance.now() - startMs) / 1000).toFixed(1)
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster', '--boot-delay', '1s')
  const { out: crds } = await runTenon(t, cwd, ['crds'])
  await kubectlOut(cwd, ['apply', '--server-side', '-f', '-'], crds)
  await kubectlOut(cwd, ['apply', '-f', '-'], manifests)
  const settings = await controllerSettings(cwd)
  const cloud = cloudOf(settings)
  const launched = observeLaunches(t, cloud)

  const lives: number[] = []
  for (let life = 1; life <= deaths; life++) {
    await scale(cwd, life * podsPerLife)
    const controller = startController(t, cwd, settings)
    lives.push(integerBetween(random, lifeMs.min, lifeMs.max))
    await sleep(lives.at(-1))
    assert.equal((await controller.end('SIGKILL')).signal, 'SIGKILL', controller.err())
  }
  t.diagnostic(`${seconds()} s: ${deaths} controllers killed after ${lives.join(', ')} ms`)

  const pods = deaths * podsPerLife
  const controller = startController(t, cwd, settings)
  const running = async () =>
    (await objectsOf<Pod>(cwd, 'pods')).filter((pod) => pod.status?.phase === 'Running').length
  await eventually(
    async () => (await running()) === pods || undefined,
    () => `${pods} pods run\n${controller.err()}${controller.out()}`,
  )
  t.diagnostic(`${seconds()} s: ${pods} pods run`)
  const claims = await objectsOf<NodeClaim>(cwd, 'nodeclaims')
  const instances = await cloud.listInstances()
  assert.deepEqual(
    instances.map(({ id, labels }) => `${labels?.[claimLabel]} exoscale://${id}`).toSorted(),
    claims.map(({ metadata, status }) => `${metadata.name} ${status?.providerID}`).toSorted(),
    'every instance belongs to a claim that names it, and every claim has one',
  )

  await scale(cwd, 0)
  await eventually(
    async () => (await cloud.listInstances()).length === 0 || undefined,
    () => `the cloud is empty\n${controller.out()}`,
  )
  t.diagnostic(`${seconds()} s: the cloud is empty`)
  await eventually(
    async () =>
      (await objectsOf(cwd, 'nodeclaims')).length + (await objectsOf(cwd, 'nodes')).length === 0 || undefined,
    () => 'claims and nodes are gone',
  )
  assert.deepEqual(await controller.end('SIGTERM'), { code: 0, signal: null })
  const twice = launched.entries().filter(([, ids]) => ids.size > 1)
  assert.deepEqual([...twice], [], 'no claim ever had two instances')
  assert.ok(!launched.has('(none)'), 'no instance without a claim')
  t.diagnostic(`${launched.size} claims launched for ${pods} pods`)
})
