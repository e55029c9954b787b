/** The manifests of examples/wanted, applied as they stand: one sees what docs/wanted.md tells. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { conditionOf, karpenterKinds, type KubeObject, kinds, labels, type ResourceType } from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { deploymentKind, World, type WorldOptions } from '../world.ts'

const seconds = 1000
const minutes = 60 * seconds
const root = resolve(import.meta.dirname, '../../../../examples')

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
}

interface Example {
  readonly files: readonly string[]
  readonly settings?: Partial<Settings>
  readonly options?: Partial<WorldOptions>
  /** Pods that run, at least. */
  readonly running: number
  readonly sees?: (world: World) => Promise<void>
}

const events = (world: World): readonly EventObject[] =>
  world.cluster.server.local.list(kinds.event as ResourceType<EventObject>)
const runningOf = (world: World) => world.pods().filter(({ status }) => status?.phase === 'Running')
const claimsOf = (world: World) => world.cluster.server.local.list(karpenterKinds.nodeClaim)
const poolCondition = (world: World, type: string) => {
  const pool = world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'default')
  return pool && conditionOf(pool, type)
}

/** Lets time pass until something is seen. */
async function seen(
  world: World,
  what: string,
  isSeen: () => boolean,
  withinMs = 10 * minutes,
): Promise<void> {
  assert.ok(await world.clock.advanceUntil(isSeen, withinMs), what)
}

const gates = (more: Partial<Settings['featureGates']>): Partial<Settings> => ({
  featureGates: { ...defaultSettings.featureGates, ...more },
})
const clusterApi = { provider: 'cluster-api' } as const
const hub = '../cluster-api/hub/zones.yaml'

const played: Readonly<Record<string, Example>> = {
  '1 quota': {
    files: ['quota/nodepools.yaml', 'quota/quota.yaml'],
    options: { servesQuotas: true },
    running: 10,
    sees: (world) =>
      seen(world, 'a pod names the quota', () =>
        events(world).some(({ message }) => message.includes('CapacityQuota whole-cluster has ')),
      ),
  },
  '2 repair': { files: ['repair.yaml'], settings: gates({ nodeRepair: true }), running: 6 },
  '2 repair-reboot': { files: ['repair-reboot.yaml'], settings: gates({ nodeRepair: true }), running: 2 },
  '3 surge': {
    files: ['surge.yaml'],
    settings: { surgeOnDrain: 'annotated' },
    running: 1,
    async sees(world) {
      const [pod] = runningOf(world)
      world.cluster.server.local.delete(kinds.node, undefined, pod?.spec.nodeName ?? '')
      let leastRunning = 1
      await seen(world, 'a new pod runs elsewhere', () => {
        leastRunning = Math.min(leastRunning, runningOf(world).length)
        return world.pods().length === 1 && world.pods()[0]?.metadata.uid !== pod?.metadata.uid
      })
      assert.equal(leastRunning, 1)
      assert.ok(events(world).some(({ reason }) => reason === 'SurgeStarted'))
    },
  },
  '4 soft-expiry': {
    files: ['soft-expiry.yaml'],
    running: 6,
    sees: (world) =>
      seen(world, 'an expired node is replaced as a drifted one', () =>
        claimsOf(world).some((claim) => conditionOf(claim, 'Drifted')?.reason === 'Expired'),
      ),
  },
  '5 windows-pods': { files: ['windows-pods.yaml'], running: 6 },
  '5 windows-time-zone': { files: ['windows-time-zone.yaml'], running: 6 },
  '5 windows-headroom': { files: ['windows-headroom.yaml'], running: 0 },
  '6 zones': {
    files: [hub, 'zones.yaml'],
    options: clusterApi,
    running: 9,
    async sees(world) {
      const zones = Map.groupBy(world.nodes(), ({ metadata }) => metadata.labels?.[labels.zone])
      assert.deepEqual(
        [...zones.values()].map(({ length }) => length),
        [3, 3, 3],
      )
      await Promise.resolve()
    },
  },
  '6 sequential-zones': { files: [hub, 'sequential-zones.yaml'], options: clusterApi, running: 9 },
  '7 pod-deletion-cost': {
    files: ['pod-deletion-cost.yaml'],
    settings: { podDeletionCost: true },
    running: 20,
    async sees(world) {
      const costOf = ({ metadata }: KubeObject) =>
        Number(metadata.annotations?.['controller.kubernetes.io/pod-deletion-cost'] ?? 0)
      await seen(world, 'pods have costs', () => world.pods().every((pod) => costOf(pod) < 0))
      const before = world.nodes().length
      const staying = world
        .pods()
        .toSorted((a, b) => costOf(b) - costOf(a))
        .slice(0, 10)
      world.cluster.server.local.patch(deploymentKind, 'default', 'web', { spec: { replicas: 10 } })
      await seen(world, 'half of the nodes go', () => world.nodes().length === before / 2)
      const uids = (pods: readonly KubeObject[]) => new Set(pods.map(({ metadata }) => metadata.uid))
      assert.deepEqual(uids(world.pods()), uids(staying))
    },
  },
  '8 price-per-node': {
    files: ['price-per-node.yaml'],
    running: 12,
    async sees(world) {
      assert.ok(world.nodes().length < 3, `${world.nodes().length} nodes`)
      await Promise.resolve()
    },
  },
  '9 rollout': {
    files: ['rollout.yaml'],
    running: 6,
    async sees(world) {
      await seen(world, 'complete', () => poolCondition(world, 'RolloutComplete')?.status === 'True')
      world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', {
        spec: { template: { metadata: { labels: { release: '2' } } } },
      })
      const messages = new Set<string>()
      const isComplete = () => {
        const { status, message = '' } = poolCondition(world, 'RolloutComplete') ?? {}
        messages.add(message)
        return status === 'True' && messages.size > 1
      }
      await seen(world, 'complete again', isComplete, 60 * minutes)
      assert.ok(
        [...messages].some((text) => /^\d of \d nodes updated/.test(text)),
        [...messages].join('\n'),
      )
    },
  },
  '9 field-ignored': {
    files: ['field-ignored.yaml'],
    running: 0,
    sees: (world) =>
      seen(world, 'the condition', () => poolCondition(world, 'FieldIgnored')?.status === 'True', minutes),
  },
}

async function play(t: TestContext, example: Example): Promise<void> {
  const { files, options, running, sees, settings } = example
  const world = await World.start({
    seed: 3,
    provider: 'exoscale',
    ...(settings && { settings }),
    ...options,
  })
  t.after(() => world.stop())
  for (const file of files)
    for (const manifest of readFileSync(join(root, 'wanted', file), 'utf8').split(/^---\n/m))
      assert.deepEqual(await applyYaml(world, manifest), { status: 201, message: '' }, manifest)
  await world.startOperator()
  await seen(world, `${running} pods run`, () => runningOf(world).length >= running)
  await world.clock.advance(minutes)
  assert.ok(runningOf(world).length >= running)
  await sees?.(world)
  assert.deepEqual(
    events(world).filter(({ reason }) => reason === 'AnnotationIgnored'),
    [],
  )
}

for (const [name, example] of Object.entries(played))
  test(`the example of section ${name} does what its comment says`, (t) => play(t, example))

test('each example is played', () => {
  const all = readdirSync(join(root, 'wanted'), { recursive: true, encoding: 'utf8' })
  const files = new Set(Object.values(played).flatMap((example) => example.files))
  assert.deepEqual(
    all.filter((file) => file.endsWith('.yaml') && !files.has(file)),
    [],
  )
})
