/** Words for stories about many nodes at once: instances join by themselves, and pods that go come back elsewhere. */
import {
  disruptedTaint,
  formatResources,
  type InstanceType,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type Pod,
  type SelectingWorkload,
  sameTaint,
  unregisteredTaint,
} from '@tenon/api'
import { createCredentials, type KubeletHandle } from '@tenon/devcluster'
import { ProviderError } from '@tenon/provider'
import { VirtualClock } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { openDisruption } from './disruption-stage.test-support.ts'

type Opening = Parameters<typeof openDisruption>

/** How long an instance takes until it joins. */
const joinMs = 3 * seconds
/** Making keys takes longer than most stories. */
const credentials = await createCredentials(new VirtualClock().now())

/** The type at another price. */
export function priced(type: InstanceType, pricePerHour: number): InstanceType {
  return { ...type, offerings: type.offerings.map((offering) => ({ ...offering, pricePerHour })) }
}

/** The type when it is not to be had. */
export function soldOut(type: InstanceType): InstanceType {
  return { ...type, offerings: type.offerings.map((offering) => ({ ...offering, available: false })) }
}

/** What a type costs per hour. */
function priceOf(type: InstanceType | undefined): number {
  return type?.offerings[0]?.pricePerHour ?? Number.NaN
}

/** A stage whose instances join; its NodePool lets every node be until told otherwise. */
export class Fleet {
  readonly stage: Stage
  /** Whether the instance of a claim joins. */
  joins: (claim: NodeClaim) => boolean = () => true
  readonly #kubelets = new Map<string, KubeletHandle>()

  private constructor(stage: Stage) {
    this.stage = stage
  }

  static async open(t: Opening[0], { disruption, ...options }: Opening[1] = {}): Promise<Fleet> {
    const stage = await openDisruption(t, {
      credentials,
      ...options,
      disruption: { consolidateAfter: 'Never', ...disruption },
    })
    const fleet = new Fleet(stage)
    stage.cloud.onCreate = (claim) => {
      fleet.#launch(claim)
    }
    stage.world.cluster.server.local.subscribe(kinds.node, {
      deleted: ({ metadata }) => fleet.#kubelets.get(metadata.name)?.stop(),
    })
    return fleet
  }

  #launch(claim: NodeClaim): void {
    const { cloud, world } = this.stage
    const { name } = claim.metadata
    const admitted = claim.spec.requirements.find(({ key }) => key === labels.instanceType)?.values
    const [type] = cloud.instanceTypes
      .filter((each) => admitted?.includes(each.name) !== false && each.offerings[0]?.available === true)
      .toSorted((a, b) => priceOf(a) - priceOf(b))
    if (type === undefined) throw new ProviderError('insufficientCapacity', `nothing to be had for ${name}`)
    const amounts = formatResources(type.capacity)
    const extras = { labels: labelsOf(type), capacity: amounts, allocatable: amounts }
    cloud.extras = extras
    if (!this.joins(claim)) return
    world.clock.after(joinMs, () => {
      const spec = {
        ...extras,
        nodeName: `node-${name}`,
        providerId: `fake://${name}`,
        taints: [unregisteredTaint],
        addresses: [],
        kubeletVersion: 'v1.34.1',
        systemUuid: name,
      }
      this.#kubelets.set(spec.nodeName, world.cluster.kubelets.start(spec))
    })
  }

  /** Instances of these types in a NodePool, by the names of their claims, each initialized as `node-NAME`. */
  async nodes(wanted: Readonly<Record<string, InstanceType>>, pool = 'default'): Promise<void> {
    const { stage } = this
    const owner = {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      name: pool,
      uid: stage.poolNow(pool)?.metadata.uid ?? '',
      blockOwnerDeletion: true,
    }
    for (const [name, type] of Object.entries(wanted)) {
      const only = { key: labels.instanceType, operator: 'In' as const, values: [type.name] }
      const metadata = { labels: { [labels.nodePool]: pool }, ownerReferences: [owner] }
      stage.world.create(karpenterKinds.nodeClaim, stage.aClaim(name, { requirements: [only] }, metadata))
    }
    const haveJoined = () =>
      Object.keys(wanted).every((name) => stage.state(name, 'Initialized').startsWith('True'))
    if (!(await stage.world.clock.advanceUntil(haveJoined, 2 * minutes)))
      throw new Error('some nodes were not initialized within two minutes')
  }

  /** A ReplicaSet that has a pod on each of these nodes, `APP-0` on the first; what goes comes back under another name. */
  workload(app: string, nodes: readonly string[], spec: Pod['spec']): void {
    const { world } = this.stage
    const set = world.create(kinds.replicaSet, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: app, namespace: 'default' },
      spec: {
        replicas: nodes.length,
        selector: { matchLabels: { app } },
        template: { metadata: { labels: { app } }, spec },
      } as SelectingWorkload['spec'],
    })
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: app,
      uid: set.metadata.uid ?? '',
      controller: true,
    }
    for (const [index, nodeName] of nodes.entries())
      world.create(kinds.pod, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `${app}-${index}`,
          namespace: 'default',
          labels: { app },
          ownerReferences: [owner],
        },
        spec: { ...spec, nodeName },
      })
  }

  /** Claims that are not on their way out. */
  staying(): readonly NodeClaim[] {
    return this.stage.world.claims().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  }

  /** What the claims cost together, as prices are now. */
  pricePerHour(claims: readonly NodeClaim[] = this.staying()): number {
    const types = new Map(this.stage.cloud.instanceTypes.map((type) => [type.name, type]))
    return claims.reduce(
      (sum, { metadata }) => sum + priceOf(types.get(metadata.labels?.[labels.instanceType] ?? '')),
      0,
    )
  }

  /** Names of the pods that do not run as they should. */
  notRunning(): readonly string[] {
    return this.stage.world
      .pods()
      .filter((pod) => !isReady(pod))
      .map(({ metadata }) => metadata.name)
  }

  /**
   * Lets time pass until instances have neither come nor gone for so long, all pods run and no node is on its way out.
   * @returns whether it came to that.
   */
  async untilCalm(calmMs: number, limitMs: number): Promise<boolean> {
    const { stage } = this
    const end = stage.now + limitMs
    let last = ''
    let since = stage.now
    while (stage.now < end) {
      const now = this.#picture()
      if (now !== last) since = stage.now
      last = now
      if (stage.now - since >= calmMs && this.notRunning().length === 0 && !now.includes('-')) return true
      await stage.pass(2 * seconds)
    }
    return false
  }

  /** Equal as long as nothing about instances changes; with a `-` for what is on its way out or in. */
  #picture(): string {
    const { world } = this.stage
    const claims = world.claims().map(({ metadata, status }) => {
      const isInitialized = status?.conditions?.some(
        ({ type, status: value }) => type === 'Initialized' && value === 'True',
      )
      const isSettled = metadata.deletionTimestamp === undefined && isInitialized === true
      return `${metadata.uid?.replaceAll('-', '')}${isSettled ? '' : '-'}`
    })
    const nodes = world.nodes().map((node) => (isTainted(node) ? 'tainted-' : ''))
    return [...claims, ...nodes].join(' ')
  }
}

/** Whether the node is marked as one that goes. */
export function isTainted({ spec }: Node): boolean {
  return (spec?.taints ?? []).some((taint) => sameTaint(taint, disruptedTaint))
}

/** Whether the pod runs, is ready, and stays. */
export function isReady({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    status?.phase === 'Running' &&
    status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
  )
}

/** What a pod of one container asks for. */
export function asking(requests: Readonly<Record<string, string>>): Pod['spec'] {
  return {
    terminationGracePeriodSeconds: 5,
    containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests } }],
  }
}

function labelsOf(type: InstanceType): Readonly<Record<string, string>> {
  return {
    [labels.os]: 'linux',
    [labels.arch]: 'amd64',
    [labels.instanceType]: type.name,
    [labels.zone]: 'zone-1',
    [labels.capacityType]: 'on-demand',
  }
}
