/** A world without kubelets and scheduler at work: tests play the instances and the pods themselves. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import {
  type Condition,
  conditionOf,
  karpenterKinds,
  type KubeObject,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type OwnerReference,
  type Pod,
  type ResourceType,
  type Taint,
  unregisteredTaint,
} from '@tenon/api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { type Clock, rfc3339, type Transport } from '@tenon/runtime'
import { aKwokPool, type RunningOperator, World, type WorldOptions } from '../world.ts'
import { ScriptedCloud } from './scripted-cloud.test-support.ts'

export const seconds = 1000
export const minutes = 60_000
export const hours = 60 * minutes
const forever = 1e12

interface StageEvent {
  readonly reason: string
  readonly type: string
  readonly message: string
  readonly object: string
}

interface EventObject extends KubeObject {
  readonly reason: string
  readonly type: string
  readonly message: string
  readonly involvedObject: { readonly kind: string; readonly name: string }
}

/** One test's world: a scripted cloud, an operator, and verbs that tell a story. */
export class Stage {
  readonly world: World
  readonly cloud: ScriptedCloud
  operator!: RunningOperator

  private constructor(world: World, cloud: ScriptedCloud) {
    this.world = world
    this.cloud = cloud
  }

  /** Starts the world and the operator; both end with the test. A NodePool `default` exists. */
  static async open(
    t: Pick<TestContext, 'after'>,
    options: Partial<WorldOptions> & {
      readonly pool?: Partial<NodePool['spec']>
      readonly idle?: boolean
    } = {},
  ): Promise<Stage> {
    let clock: Clock | undefined
    const cloud = new ScriptedCloud(() => clock as Clock)
    const { pool, idle = false, ...worldOptions } = options
    const world = await World.start({
      seed: 1,
      provider: cloud,
      cluster: { controllers: { nodeMonitorGraceMs: forever, nodeStartupGraceMs: forever } },
      ...worldOptions,
    })
    clock = world.clock
    const stage = new Stage(world, cloud)
    const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
    world.create(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'default' }, spec: {} })
    world.create(
      karpenterKinds.nodePool,
      aKwokPool('default', { disruption: { consolidateAfter: 'Never' }, ...pool }),
    )
    t.after(() => stage.#close())
    if (!idle) await stage.start()
    return stage
  }

  async start(): Promise<void> {
    this.operator = await this.world.startOperator()
    await this.pass(2 * seconds)
  }

  /** The operator's process dies and another one starts. */
  async restart(): Promise<void> {
    await this.world.bury(this.operator)
    await this.start()
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms)
  }

  get now(): number {
    return this.world.clock.now()
  }

  /** Creates a claim as the provisioner would, and lets a moment pass. */
  async claim(
    name: string,
    spec: Partial<NodeClaim['spec']> = {},
    metadata: Partial<NodeClaim['metadata']> = {},
  ): Promise<NodeClaim> {
    const claim = this.world.create(karpenterKinds.nodeClaim, this.aClaim(name, spec, metadata))
    await this.pass(100)
    return claim
  }

  aClaim(
    name: string,
    spec: Partial<NodeClaim['spec']> = {},
    metadata: Partial<NodeClaim['metadata']> = {},
  ): NodeClaim {
    const pool = this.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'default')
    return {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: {
        name,
        ownerReferences: [
          {
            apiVersion: 'karpenter.sh/v1',
            kind: 'NodePool',
            name: 'default',
            uid: pool?.metadata.uid ?? '',
            blockOwnerDeletion: true,
          },
        ],
        ...metadata,
        labels: {
          [labels.nodePool]: 'default',
          [labels.os]: 'linux',
          'karpenter.kwok.sh/kwoknodeclass': 'default',
          ...metadata.labels,
        },
      },
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }],
        expireAfter: 'Never',
        ...spec,
      },
    }
  }

  /** The instance of a claim joins, not Ready yet. */
  async join(
    claim: string,
    {
      name = `node-${claim}`,
      taints = [unregisteredTaint],
      ...metadata
    }: Partial<Node['metadata']> & { readonly taints?: readonly Taint[] } = {},
  ): Promise<void> {
    this.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, ...metadata },
      spec: { providerID: `fake://${claim}`, taints },
    })
    await this.pass(100)
  }

  /** A node reports. */
  async report(
    node: string,
    status: 'True' | 'False' | 'Unknown' = 'True',
    resources: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const at = rfc3339(this.now)
    const amounts = { cpu: '4', memory: '8Gi', pods: '110', ...resources }
    const condition = {
      type: 'Ready',
      status,
      reason: 'Kubelet',
      message: '',
      lastHeartbeatTime: at,
      lastTransitionTime: at,
    }
    this.patch(
      kinds.node,
      node,
      { status: { capacity: amounts, allocatable: amounts, conditions: [condition] } },
      'status',
    )
    await this.pass(2500)
  }

  /** A claim that has become an initialized node, named `node-NAME`. */
  async ready(
    name: string,
    spec: Partial<NodeClaim['spec']> = {},
    metadata: Partial<NodeClaim['metadata']> = {},
  ): Promise<void> {
    await this.claim(name, spec, metadata)
    await this.join(name)
    await this.report(`node-${name}`)
  }

  /** A pod that runs on a node. */
  async pod(
    name: string,
    node: string,
    {
      status,
      spec,
      ...metadata
    }: Partial<Pod['metadata']> & {
      readonly spec?: Partial<Pod['spec']>
      readonly status?: Pod['status']
    } = {},
  ): Promise<void> {
    this.world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', ...metadata },
      spec: {
        nodeName: node,
        terminationGracePeriodSeconds: 30,
        containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
        ...spec,
      },
    })
    const startTime = rfc3339(this.now)
    this.patch(kinds.pod, name, { status: { phase: 'Running', startTime, ...status } }, 'status', 'default')
    await this.pass(100)
  }

  /** A DaemonSet that makes no pods of its own; answers the reference that its pods carry. */
  async daemonSet(name: string): Promise<OwnerReference> {
    const labelled = { matchLabels: { app: name } }
    const { metadata } = this.world.create(kinds.daemonSet, {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name, namespace: 'default' },
      spec: {
        selector: labelled,
        template: {
          metadata: { labels: labelled.matchLabels },
          spec: {
            nodeSelector: { 'example.com/nowhere': 'true' },
            containers: [{ name: 'app', image: 'registry.k8s.io/pause' }],
          },
        },
      },
    })
    await this.pass(100)
    return { apiVersion: 'apps/v1', kind: 'DaemonSet', name, uid: metadata.uid ?? '' }
  }

  /** The kubelet has stopped a pod. */
  async end(pod: string): Promise<void> {
    this.world.cluster.server.local.delete(kinds.pod, 'default', pod, { gracePeriodSeconds: 0 })
    await this.pass(1500)
  }

  delete(type: ResourceType, name: string): void {
    this.world.cluster.server.local.delete(type, undefined, name)
  }

  async deleteClaim(name: string): Promise<void> {
    this.delete(karpenterKinds.nodeClaim, name)
    await this.pass(500)
  }

  patch<T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    patch: object,
    subresource?: 'status',
    namespace?: string,
  ): void {
    this.world.cluster.server.local.patch(type, namespace, name, patch, subresource)
  }

  claimNow(name: string): NodeClaim | undefined {
    return this.world.cluster.server.local.get(karpenterKinds.nodeClaim, undefined, name)
  }

  nodeNow(name: string): Node | undefined {
    return this.world.cluster.server.local.get(kinds.node, undefined, name)
  }

  podNow(name: string): Pod | undefined {
    return this.world.cluster.server.local.get(kinds.pod, 'default', name)
  }

  poolNow(name = 'default'): NodePool | undefined {
    return this.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, name)
  }

  /** Whether the API server was told to stop the pod. */
  isLeaving(pod: string): boolean {
    const found = this.podNow(pod)
    return found === undefined || found.metadata.deletionTimestamp !== undefined
  }

  condition(claim: string, type: string): Condition | undefined {
    const found = this.claimNow(claim)
    return found === undefined ? undefined : conditionOf(found, type)
  }

  /** `Status/Reason` of a claim's condition, or `absent`. */
  state(claim: string, type: string): string {
    const found = this.condition(claim, type)
    return found === undefined ? 'absent' : `${found.status}/${found.reason}`
  }

  events(reason: string): readonly StageEvent[] {
    return this.world.cluster.server.local
      .list(kinds.event as ResourceType<EventObject>)
      .filter((event) => event.reason === reason)
      .map(({ type, message, involvedObject }) => ({
        reason,
        type,
        message,
        object: `${involvedObject.kind}/${involvedObject.name}`,
      }))
  }

  /**
   * Sum over the series of a metric whose labels include `wanted`.
   * @param name without the prefix `karpenter_`; the full name of other metrics.
   */
  async metric(name: string, wanted: Readonly<Record<string, string>> = {}): Promise<number> {
    const { registry } = this.operator.operator.metrics
    const metric = registry.getSingleMetric(`karpenter_${name}`) ?? registry.getSingleMetric(name)
    assert.ok(metric !== undefined, `there is no metric ${name}`)
    const { values } = await metric.get()
    return values
      .filter((each) => !('metricName' in each) || String(each.metricName).endsWith('_count'))
      .filter((each) => !('quantile' in each.labels))
      .filter((each) => Object.entries(wanted).every(([label, value]) => each.labels[label] === value))
      .reduce((total, each) => total + each.value, 0)
  }

  async #close(): Promise<void> {
    if (this.operator as RunningOperator | undefined) await this.world.bury(this.operator)
    await this.world.stop()
  }
}

/**
 * What a transport may be told to do with a request instead of sending it; `unserved`: what kube-apiserver says of kinds
 * that it does not serve.
 */
export type Interception = (
  method: string,
  path: string,
  body: string,
) => 'pass' | 'unserved' | keyof typeof refusals

const refusals = {
  conflict: { code: 409, reason: 'Conflict' },
  forbidden: { code: 403, reason: 'Forbidden' },
  notFound: { code: 404, reason: 'NotFound' },
  error: { code: 500, reason: 'InternalError' },
} as const

/** Refuses requests as a test says. */
export function intercepting(decide: Interception): (inner: Transport) => Transport {
  return (inner) => ({
    send: async (request, signal) => {
      const text = typeof request.body === 'string' ? request.body : new TextDecoder().decode(request.body)
      const verdict = decide(request.method, request.path, text)
      if (verdict === 'pass') return await inner.send(request, signal)
      if (verdict === 'unserved')
        return {
          status: 404,
          headers: { 'content-type': 'text/plain; charset=utf-8' },
          body: Readable.from(['404 page not found\n']),
        }
      const { code, reason } = refusals[verdict]
      const status = {
        apiVersion: 'v1',
        kind: 'Status',
        status: 'Failure',
        code,
        reason,
        message: 'refused by the test',
      }
      const headers = { 'content-type': 'application/json' }
      return { status: code, headers, body: Readable.from([JSON.stringify(status)]) }
    },
  })
}
