/** The manifests of examples/clever-cloud, as the API server takes them, held to the list of what they have to show. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  karpenterKinds,
  type KubeObject,
  kinds,
  type NodePool,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import { type CleverNodeClass, cleverNodeClassKind, ownNames } from '@tenon/provider-clever-cloud'
import { inside } from '@tenon/simulator-clever-cloud'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { deploymentKind, World } from '../world.ts'

const folder = resolve(import.meta.dirname, '../../../../examples/clever-cloud')
const readme = readFileSync(join(folder, 'README.md'), 'utf8')

/** Documents of the files of a folder, by the file's name. */
function manifestsIn(path: string): ReadonlyMap<string, readonly string[]> {
  const files = readdirSync(path).filter((name) => name.endsWith('.yaml'))
  return new Map(files.map((name) => [name, readFileSync(join(path, name), 'utf8').split(/^---\n/m)]))
}

const pools = manifestsIn(folder)
const workloads = manifestsIn(join(folder, 'workloads'))

const manifest = (name: string): readonly string[] => pools.get(name) ?? workloads.get(name) ?? []

/** A cluster, with nodes of the control plane, that has taken every document. */
async function worldWith(documents: readonly string[]): Promise<World> {
  const world = await World.start({
    seed: 1,
    provider: 'clever-cloud',
    cleverCloud: { controlPlane: inside },
  })
  for (const document of documents)
    assert.deepEqual(await applyYaml(world, document), { status: 201, message: '' }, document)
  return world
}

/** The part of a Deployment that is read here. */
interface Deployment extends KubeObject {
  readonly spec: { readonly replicas: number; readonly template: Pick<Pod, 'metadata' | 'spec'> }
}

/** What section 17 of the sheet says of a NodePool, in one line. */
function summaryOf(pool: NodePool): string {
  const { template, disruption, limits = {}, weight } = pool.spec
  const { metadata, spec } = template
  const parts = [
    ...(spec.requirements ?? []).map(
      ({ key, operator, values = [], minValues }) =>
        `${key.replace(/^.*\//, '')} ${operator} ${values.join()}${minValues === undefined ? '' : ` min ${minValues}`}`,
    ),
    `limits ${limits['cpu']}/${limits['memory']}`,
    `${disruption?.consolidationPolicy} ${disruption?.consolidateAfter}`,
    weight === undefined ? '' : `weight ${weight}`,
    Object.entries(metadata?.labels ?? {})
      .map((pair) => `label ${pair.join('=')}`)
      .join(),
    (spec.taints ?? []).map(({ key, value, effect }) => `taint ${key}=${value}:${effect}`).join(),
    spec.terminationGracePeriod === undefined ? '' : `grace ${spec.terminationGracePeriod}`,
    spec.expireAfter === '720h' ? '' : `expires ${spec.expireAfter}`,
    (disruption?.budgets ?? [])
      .map(({ nodes, schedule = '', duration = '' }) =>
        ['budget', nodes, schedule, duration].join(' ').trim(),
      )
      .filter((budget) => budget !== 'budget 10%')
      .join(),
  ]
  return parts.filter((part) => part !== '').join('; ')
}

const consolidated = 'WhenEmptyOrUnderutilized 30s'

test('every NodePool and node class is admitted, and is what the list of examples says', async () => {
  const world = await worldWith([...pools.values()].flat())
  const stored = world.cluster.server.local.list(karpenterKinds.nodePool)
  const summaries = Object.fromEntries(stored.map((pool) => [pool.metadata.name, summaryOf(pool)]))
  assert.deepEqual(summaries, {
    'general-purpose': `arch In amd64; os In linux; capacity-type In on-demand; limits 16/16Gi; ${consolidated}; expires Never`,
    'small-flavors': `instance-type In 2XS,XS; limits 12/12Gi; ${consolidated}`,
    'large-instances': `instance-type In M,L,XL; limits 16/16Gi; ${consolidated}`,
    'flavor-pinned': `flavor In XS; limits 12/16Gi; ${consolidated}`,
    'cpu-limit': `instance-type In 2XS; limits 8/8Gi; ${consolidated}`,
    'team-platform': `instance-type In 2XS,XS,S; limits 12/12Gi; ${consolidated}; label team=platform; taint team=platform:NoSchedule`,
    'preferred-small': `instance-type In 2XS; limits 8/8Gi; ${consolidated}; weight 100`,
    'fallback-any': `instance-type In 2XS,XS,S,M; limits 16/16Gi; ${consolidated}; weight 10`,
    'min-values': `instance-type In 2XS,XS,S,M min 2; limits 12/12Gi; ${consolidated}`,
    'max-node-lifetime': `instance-type In 2XS,XS,S; limits 12/12Gi; ${consolidated}; grace 1h; expires 168h`,
    'disruption-budgets': `instance-type In 2XS,XS,S; limits 12/12Gi; ${consolidated}; budget 1,budget 0 0 8 * * mon-fri 10h`,
  })
  const classes = world.cluster.server.local.list(cleverNodeClassKind)
  const labels = new Map(classes.map(({ metadata, spec }: CleverNodeClass) => [metadata.name, spec?.labels]))
  for (const pool of stored) {
    const { name } = pool.spec.template.spec.nodeClassRef
    assert.deepEqual(
      labels.get(name),
      name === 'team-platform' ? { 'cost-center': 'platform-eng' } : {},
      name,
    )
  }
  assert.equal(labels.size, 10, 'one class a file')
  await world.stop()
})

test('every workload is admitted, starts with nothing, and is what the list of examples says', async () => {
  const world = await worldWith([...workloads.values()].flat())
  const stored = world.cluster.server.local.list(deploymentKind)
  const summaries = stored.map((deployment) => {
    const { replicas, template } = (deployment as Deployment).spec
    const { nodeSelector, containers, terminationGracePeriodSeconds } = template.spec
    const { requests = {} } = containers[0]?.resources ?? {}
    const selector = Object.entries(nodeSelector ?? {}).map(
      ([key, value]) => `${key.replace(/^.*\//, '')}=${value}`,
    )
    assert.deepEqual([replicas, terminationGracePeriodSeconds], [0, 0], deployment.metadata.name)
    return [deployment.metadata.name, `${requests['cpu']}/${requests['memory']} ${selector.join()}`]
  })
  const worker = 'cluster-node-role=worker'
  assert.deepEqual(Object.fromEntries(summaries), {
    inflate: `1/1500Mi ${worker}`,
    'one-pod-per-node': `500m/512Mi ${worker}`,
    'do-not-disrupt': `500m/512Mi ${worker}`,
    'flavor-selector': '500m/512Mi flavor=XS',
    'prefer-small': `500m/512Mi ${worker}`,
    'team-workload': '1/1Gi team=platform',
    'disruption-budget': `500m/1Gi ${worker}`,
  })
  assert.equal(world.cluster.server.local.list(kinds.podDisruptionBudget).length, 1)
  await world.stop()
})

test('the page of the examples lists every file once, with the limits that it has', () => {
  const rows = new Map(
    [...readme.matchAll(/^\| \[([\w-]+)\]\((\S+)\) \| (.*) \|$/gm)].map(([, name, path = '', rest = '']) => {
      assert.equal(path.replace(/^.*\//, ''), `${name}.yaml`)
      return [path, rest] as const
    }),
  )
  const files = [...pools.keys(), ...[...workloads.keys()].map((name) => `workloads/${name}`)]
  assert.deepEqual([...rows.keys()].toSorted(), files.toSorted())
  for (const [name, documents] of pools)
    for (const [, cpu, memory] of documents.join('').matchAll(/limits:\n +cpu: (\d+)\n +memory: (\w+)/g))
      assert.ok(rows.get(name)?.includes(`${cpu} CPUs, ${memory}`), name)
})

interface EventObject extends KubeObject {
  readonly message: string
  readonly involvedObject: { readonly name: string }
}

const eventKind: ResourceType<EventObject> = {
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
}

interface Played {
  readonly world: World
  /** Running pods. */
  readonly running: number
  /** Flavors of the NodeGroups with their NodePools, sorted. */
  readonly nodes: readonly string[]
}

/** A NodePool's file and a workload with so many replicas, until nothing changes any more. */
async function played(t: TestContext, pool: string, workload: string, replicas: number): Promise<Played> {
  const world = await worldWith([...manifest(`${pool}.yaml`), ...manifest(`${workload}.yaml`)])
  const operator = await world.startOperator()
  t.after(async () => {
    await world.bury(operator)
    await world.stop()
  })
  world.scale(workload, replicas)
  await world.clock.advance(3 * 60_000)
  const running = world.pods().filter(({ status }) => status?.phase === 'Running').length
  const nodes = world
    .nodeGroups()
    .map(({ metadata, spec }) => `${spec.flavor} of ${metadata.labels?.[ownNames.nodePool]}`)
  return { world, running, nodes: nodes.toSorted() }
}

const stories: readonly (readonly [
  pool: string,
  workload: string,
  replicas: number,
  nodes: readonly string[],
])[] = [
  ['general-purpose', 'inflate', 3, ['XS of general-purpose']],
  ['small-flavors', 'inflate', 6, ['2XS of small-flavors', 'XS of small-flavors']],
  ['large-instances', 'inflate', 6, ['M of large-instances']],
  ['flavor-pinned', 'flavor-selector', 2, ['XS of flavor-pinned']],
  ['team-dedicated', 'team-workload', 2, ['2XS of team-platform']],
  [
    'weighted-nodepools',
    'one-pod-per-node',
    3,
    ['2XS of fallback-any', '2XS of preferred-small', '2XS of preferred-small'],
  ],
  ['min-values', 'inflate', 3, ['XS of min-values']],
  ['max-node-lifetime', 'do-not-disrupt', 2, ['2XS of max-node-lifetime']],
  ['disruption-budgets', 'disruption-budget', 2, ['2XS of disruption-budgets']],
  ['general-purpose', 'prefer-small', 2, ['2XS of general-purpose']],
]

for (const [pool, workload, replicas, expected] of stories)
  test(`${pool} gives ${replicas} pods of ${workload} ${expected.join(', ')}`, async (t) => {
    const { running, nodes } = await played(t, pool, workload, replicas)
    assert.deepEqual({ running, nodes }, { running: replicas, nodes: expected })
  })

test('cpu-limit ends at two nodes, and the third pod says why it waits', async (t) => {
  const { world, running, nodes } = await played(t, 'cpu-limit', 'one-pod-per-node', 3)
  assert.deepEqual({ running, nodes }, { running: 2, nodes: ['2XS of cpu-limit', '2XS of cpu-limit'] })
  const waiting = world.pods().find(({ status }) => status?.phase !== 'Running')?.metadata.name
  const said = world.cluster.server.local
    .list(eventKind)
    .filter(({ involvedObject }) => involvedObject.name === waiting)
    .map(({ message }) => message)
  assert.ok(
    said.some((message) => /limits?\b.*cpu/.test(message)),
    said.join('\n'),
  )
})

test('nodes of team-dedicated have the labels and the taint of the team', async (t) => {
  const { world } = await played(t, 'team-dedicated', 'team-workload', 1)
  const node = world.nodes().find(({ spec }) => spec?.providerID !== undefined)
  assert.equal(node?.metadata.labels?.['team'], 'platform')
  assert.equal(node.metadata.labels['cost-center'], 'platform-eng')
  assert.deepEqual(node.spec?.taints, [{ key: 'team', value: 'platform', effect: 'NoSchedule' }])
})
