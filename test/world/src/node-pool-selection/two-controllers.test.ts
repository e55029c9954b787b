/** Two controllers beside each other, each with its own `--node-pools` (scale.md 1). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  karpenterKinds,
  type KubeObject,
  kinds,
  type Lease,
  labels,
  type NodeClaim,
  type NodePool,
  parseResource,
  type PodSpec,
  type ResourceType,
} from '@tenon/api'
import type { Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { type HttpRequest, rfc3339 } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, type RunningOperator, World } from '../world.ts'

const minutes = 60_000
const controllerAnnotation = 'tenon.sh/controller'
const [teamA, teamB] = ['kube-system/tenon-a', 'kube-system/tenon-b'] as const

interface EventObject extends KubeObject {
  readonly reason: string
  readonly message: string
  readonly involvedObject: { readonly name: string }
}

class SharedCluster {
  readonly world: World
  /** Requests by the number of the controller that sent them, in the order in which controllers started. */
  readonly writes: HttpRequest[][]
  readonly #operators = new Map<string, RunningOperator>()

  private constructor(world: World, writes: HttpRequest[][]) {
    this.world = world
    this.writes = writes
  }

  static async open(t: TestContext, pools: readonly NodePool[]): Promise<SharedCluster> {
    const writes: HttpRequest[][] = []
    const world = await World.start({
      seed: 57,
      provider: 'kwok',
      apiPath: (inner) => {
        const own: HttpRequest[] = []
        writes.push(own)
        return {
          send: (request, signal) => {
            if (request.method !== 'GET') own.push(request)
            return inner.send(request, signal)
          },
        }
      },
    })
    const shared = new SharedCluster(world, writes)
    t.after(() => shared.#close())
    world.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default' },
      spec: {},
    })
    for (const pool of pools) world.create(karpenterKinds.nodePool, pool)
    return shared
  }

  /** Starts the controller of a team, which holds its lease as long as it runs. */
  async start(controller: string, text: string): Promise<void> {
    const [key = '', value = ''] = text.split('=')
    const nodePools: Settings['nodePools'] = {
      controller,
      text,
      selector: { matchLabels: { [key]: value } },
    }
    this.lease(controller, this.world.clock.now() + 60 * minutes)
    this.#operators.set(
      controller,
      await this.world.startOperator(Number.POSITIVE_INFINITY, 'after', { nodePools }),
    )
    await this.world.clock.advance(5000)
  }

  /** @param untilMs when the lease runs out, in Unix milliseconds. */
  lease(controller: string, untilMs: number): void {
    const [namespace = '', name = ''] = controller.split('/')
    const spec: Lease['spec'] = {
      holderIdentity: 'me',
      renewTime: rfc3339(untilMs - 15_000),
      leaseDurationSeconds: 15,
    }
    const { local } = this.world.cluster.server
    if (local.get(kinds.lease, namespace, name) !== undefined)
      local.patch(kinds.lease, namespace, name, { spec })
    else
      this.world.create(kinds.lease, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { namespace, name },
        spec,
      })
  }

  async stop(controller: string): Promise<void> {
    const operator = this.#operators.get(controller)
    this.#operators.delete(controller)
    if (operator !== undefined) await this.world.bury(operator)
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms)
  }

  deploy(name: string, replicas: number, spec: Partial<PodSpec> = {}): void {
    const deployment = aDeployment(name, replicas, { cpu: '1', memory: '1Gi' })
    const { template } = deployment.spec
    this.world.create(deploymentKind, {
      ...deployment,
      spec: { ...deployment.spec, template: { ...template, spec: { ...template.spec, ...spec } } },
    } as KubeObject)
  }

  pool(name: string): NodePool | undefined {
    return this.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, name)
  }

  label(pool: string, team: string): void {
    this.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, pool, {
      metadata: { labels: { team } },
    })
  }

  claimsOf(pool: string): readonly NodeClaim[] {
    return this.world.claims().filter(({ metadata }) => metadata.labels?.[labels.nodePool] === pool)
  }

  /** Messages of events with the reason about the object. */
  events(reason: string, object: string): readonly string[] {
    return this.world.cluster.server.local
      .list(kinds.event as ResourceType<EventObject>)
      .filter((event) => event.reason === reason && event.involvedObject.name === object)
      .map(({ message }) => message)
  }

  /** The Node, NodeClaim or NodePool of each write of the controller, by name. */
  written(number: number): readonly string[] {
    const object = /\/(?:nodes|nodeclaims|nodepools)\/([^/?]+)/
    return (this.writes[number] ?? []).flatMap(({ path }) => object.exec(path)?.[1] ?? [])
  }

  async #close(): Promise<void> {
    for (const controller of this.#operators.keys()) await this.stop(controller)
    await this.world.stop()
  }
}

function poolOf(name: string, team: string | undefined, spec: Partial<NodePool['spec']> = {}): NodePool {
  const pool = aKwokPool(name, {
    disruption: {
      consolidateAfter: '30s',
      consolidationPolicy: 'WhenEmpty',
      budgets: [{ nodes: '100%' }],
    },
    ...spec,
  })
  const { template } = pool.spec
  return {
    ...pool,
    metadata: { name, ...(team !== undefined && { labels: { team } }) },
    spec: { ...pool.spec, template: { ...template, metadata: { labels: { for: name } } } },
  }
}

test('SCA-15 two controllers serve every pod once, keep limits, and touch nothing of each other', async (t) => {
  const shared = await SharedCluster.open(t, [
    poolOf('one', 'a', { limits: { cpu: '40' } }),
    poolOf('two', 'b'),
    poolOf('three', 'b', { weight: 10, limits: { cpu: '200' } }),
  ])
  await shared.start(teamA, 'team=a')
  await shared.start(teamB, 'team=b')
  assert.equal(shared.pool('one')?.metadata.annotations?.[controllerAnnotation], teamA)
  assert.equal(shared.pool('two')?.metadata.annotations?.[controllerAnnotation], teamB)

  shared.deploy('ones', 60, { nodeSelector: { for: 'one' } })
  shared.deploy('twos', 30, { nodeSelector: { for: 'two' } })
  // All three admit it; the heaviest is served by the second controller.
  shared.deploy('anywhere', 50)
  await shared.pass(3 * minutes)

  const nodeOf = new Map(shared.world.nodes().map((node) => [node.metadata.name, node]))
  const bound = shared.world.pods().filter(({ spec }) => nodeOf.has(spec.nodeName ?? ''))
  const boundOf = (app: string) => bound.filter(({ metadata }) => metadata.labels?.['app'] === app)
  const cpuOf = (pool: string) =>
    [...nodeOf.values()]
      .filter(({ metadata }) => metadata.labels?.[labels.nodePool] === pool)
      .reduce((total, { status }) => total + parseResource('cpu', status?.capacity?.['cpu'] ?? '0'), 0) / 1000
  assert.equal(boundOf('twos').length, 30)
  assert.equal(boundOf('anywhere').length, 50)
  assert.ok(cpuOf('one') <= 40, `pool one has ${cpuOf('one')} cores`)
  assert.ok(boundOf('ones').length > 30 && boundOf('ones').length <= 40)
  // Each pod got room once: with one core a pod, nobody bought much more than the pods need.
  const bought = cpuOf('two') + cpuOf('three')
  assert.ok(bought <= 80 * 1.4, `${bought} cores for 80 pods`)
  for (const claim of shared.world.claims()) {
    const isOfA = claim.metadata.labels?.[labels.nodePool] === 'one'
    assert.equal(claim.metadata.annotations?.[controllerAnnotation], isOfA ? teamA : teamB)
  }

  // Each controller removes its own empty nodes.
  shared.world.scale('twos', 0)
  shared.world.scale('ones', 0)
  await shared.pass(4 * minutes)
  assert.deepEqual(shared.claimsOf('one'), [])
  assert.equal(shared.world.pods().filter(({ spec }) => (spec.nodeName ?? '') !== '').length, 50)
  const poolOfNode = (name: string) => nodeOf.get(name)?.metadata.labels?.[labels.nodePool]
  const [ofA, ofB] = [new Set(shared.written(0)), new Set(shared.written(1))]
  assert.ok(ofA.size > 0 && ofB.size > 0)
  for (const name of ofA)
    assert.ok(!ofB.has(name), `both controllers wrote ${name} of pool ${poolOfNode(name) ?? '?'}`)
})

test('SCA-15 a NodePool changes hands with its nodes, and what is left of a deleted one goes', async (t) => {
  const shared = await SharedCluster.open(t, [poolOf('one', 'a'), poolOf('two', 'b')])
  await shared.start(teamA, 'team=a')
  await shared.start(teamB, 'team=b')
  shared.deploy('ones', 20, { nodeSelector: { for: 'one' } })
  await shared.pass(2 * minutes)
  const before = shared.claimsOf('one').map(({ metadata }) => metadata.name)
  assert.ok(before.length > 0)

  shared.label('one', 'b')
  await shared.pass(30_000)
  assert.equal(shared.pool('one')?.metadata.annotations?.[controllerAnnotation], teamB)
  assert.deepEqual(
    shared.claimsOf('one').map(({ metadata }) => metadata.annotations?.[controllerAnnotation]),
    before.map(() => teamB),
  )
  const writesOfA = shared.written(0).length
  shared.world.scale('ones', 40)
  await shared.pass(2 * minutes)
  shared.world.cluster.server.local.delete(karpenterKinds.nodePool, undefined, 'one')
  await shared.pass(5 * minutes)
  assert.deepEqual(shared.claimsOf('one'), [])
  assert.equal(shared.written(0).length, writesOfA)
})

test('SCA-15 a NodePool that no controller or two select is named, and changes hands when its controller ends', async (t) => {
  const shared = await SharedCluster.open(t, [poolOf('stray', undefined), poolOf('shared', 'a')])
  await shared.start(teamA, 'team=a')
  await shared.start(teamB, 'team=a')
  await shared.pass(3 * minutes)
  assert.match(shared.events('NodePoolNotSelected', 'stray')[0] ?? '', /no controller that runs selects/)
  assert.match(
    shared.events('NodePoolSelectedTwice', 'shared')[0] ?? '',
    /^kube-system\/tenon-a serves it, and kube-system\/tenon-b selects it, too, by "team=a"/,
  )
  assert.equal(shared.pool('shared')?.metadata.annotations?.[controllerAnnotation], teamA)

  shared.deploy('web', 10)
  await shared.pass(2 * minutes)
  const claims = shared.world.claims().length
  assert.ok(claims > 0)
  await shared.stop(teamA)
  shared.lease(teamA, shared.world.clock.now())
  await shared.pass(4 * minutes)
  assert.equal(shared.pool('shared')?.metadata.annotations?.[controllerAnnotation], teamB)
  assert.equal(shared.world.claims().length, claims)
  shared.world.scale('web', 0)
  await shared.pass(5 * minutes)
  assert.deepEqual(shared.world.claims(), [])
})
