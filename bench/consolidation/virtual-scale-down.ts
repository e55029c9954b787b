/**
 * bench/scale-down.ts on the virtual clock, in one process: the effect of consolidation after eight Deployments
 * of 100 pods each are scaled to 30. Takes about a minute of CPU time per case.
 *
 *   node bench/consolidation/virtual-scale-down.ts [small] [all]
 */
import { karpenterKinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { defaultCatalogue, kwokNodeClassKind } from '@tenon/provider-kwok'
import { aDeployment, aKwokPool, deploymentKind, World } from '@tenon/world'
import { eightShapes, smallNodes } from '../../conformance/src/planned-placement/workloads.ts'

const cases = { small: smallNodes, all: [] } as const
const replicasAfter = 30
const stepMs = 1000
const startMs = 60_000
const restMs = 10 * 60_000
const mostMs = 30 * 60_000

const names = process.argv.slice(2)
for (const [name, requirements] of Object.entries(cases))
  if (names.length === 0 || names.includes(name)) await play(name, requirements)

async function play(name: string, requirements: typeof smallNodes): Promise<void> {
  const world = await World.start({
    seed: 1,
    provider: 'kwok',
    settings: defaultSettings,
    cluster: { gitVersion: 'v1.36.0' },
  })
  const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
  world.create(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'default' }, spec: {} })
  const pool = aKwokPool('default', { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] } })
  const { template } = pool.spec
  const spec = { ...template.spec, requirements: [...template.spec.requirements, ...requirements] }
  world.create(karpenterKinds.nodePool, { ...pool, spec: { ...pool.spec, template: { ...template, spec } } })
  await world.startOperator()
  for (const { name: shape, replicas, cpu, memory } of eightShapes)
    world.create(deploymentKind, aDeployment(shape, replicas, { cpu, memory }))
  await world.clock.advance(startMs)
  const before = fleet(world)
  for (const { name: shape } of eightShapes) world.scale(shape, replicasAfter)
  const scaledMs = world.clock.now()
  const known = new Set(before.claims)
  let last = before
  let changedMs = scaledMs
  while (world.clock.now() - changedMs < restMs && world.clock.now() - scaledMs < mostMs) {
    await world.clock.advance(stepMs)
    const now = fleet(world)
    for (const claim of now.claims) known.add(claim)
    if (now.key !== last.key) changedMs = world.clock.now()
    last = now
  }
  const figures = {
    workload: name,
    nodes: `${before.claims.length} -> ${last.claims.length}`,
    price_per_hour: `${before.pricePerHour.toFixed(2)} -> ${last.pricePerHour.toFixed(3)}`,
    launches: known.size - before.claims.length,
    settled_seconds: (changedMs - scaledMs) / 1000,
    pods_running: world.pods().filter(({ status }) => status?.phase === 'Running').length,
  }
  console.log(JSON.stringify(figures))
  await world.stop()
}

function fleet(world: World): {
  readonly claims: readonly string[]
  readonly key: string
  readonly pricePerHour: number
} {
  const claims = world.claims().map(({ metadata }) => metadata.name)
  const nodes = world.nodes().map(({ metadata }) => metadata)
  return {
    claims,
    key: [...claims, ...nodes.map((node) => node.name)].toSorted().join(),
    pricePerHour: nodes.reduce((sum, node) => sum + priceOf(node.labels ?? {}), 0),
  }
}

function priceOf(tags: Readonly<Record<string, string>>): number {
  const type = defaultCatalogue().find(({ name }) => name === tags[labels.instanceType])
  const wanted = [tags[labels.zone], tags[labels.capacityType]]
  const offering = type?.offerings.find(({ requirements }) =>
    wanted.every((value) => requirements.some(({ values }) => values?.[0] === value)),
  )
  return offering?.pricePerHour ?? Number.NaN
}
