/** A stage with groups of pods: tests play the scheduler, the cloud sells a number of each offering. */
import type { TestContext } from 'node:test'
import {
  admitsValue,
  comparePrices,
  formatResources,
  type InstanceType,
  type KubeObject,
  kinds,
  labels,
  type NodeClaim,
  type NodePool,
  type Pod,
  podGroupKinds,
} from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import { aType, PoolCloud, unscheduled, waitingPod } from '../testing/pools.test-support.ts'
import { Stage } from '../testing/stage.test-support.ts'
import type { WorldOptions } from '../world.ts'

const crdKind = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
} as const

/** A cloud that launches the cheapest offering a claim allows, as often as it is there. */
class StockedCloud extends PoolCloud {
  /** By `TYPE/ZONE`; what is not here is there without end. */
  readonly stock = new Map<string, number>()
  readonly refused: string[] = []
  clockOf!: () => { sleep(ms: number): Promise<void> }

  override async create(claim: NodeClaim): Promise<ProviderInstance> {
    const [offer] = this.#offers(claim)
    await this.clockOf().sleep(500)
    if (offer === undefined) throw new ProviderError('insufficientCapacity', 'nothing is to be had')
    const { instanceType, zone, capacityType } = offer
    const key = `${instanceType}/${zone}`
    const left = this.stock.get(key)
    if (left === 0) {
      this.refused.push(key)
      throw new ProviderError('insufficientCapacity', `${key} is sold out`, {
        offerings: [{ instanceType, zone, capacityType }],
      })
    }
    if (left !== undefined) this.stock.set(key, left - 1)
    const amounts = formatResources(
      this.instanceTypes.find(({ name }) => name === instanceType)?.capacity ?? {},
    )
    this.extras = {
      capacity: amounts,
      allocatable: amounts,
      labels: {
        [labels.os]: 'linux',
        [labels.instanceType]: instanceType,
        [labels.zone]: zone,
        [labels.capacityType]: capacityType,
      },
    }
    return await super.create(claim)
  }

  #offers({ spec }: NodeClaim) {
    const allows = (key: string, value: string) =>
      spec.requirements.every((each) => each.key !== key || admitsValue(each, value))
    return this.instanceTypes
      .filter(({ name }) => allows(labels.instanceType, name))
      .flatMap(({ name, offerings }) =>
        offerings.map(({ requirements, pricePerHour }) => {
          const valueOf = (wanted: string) =>
            requirements.find(({ key }) => key === wanted)?.values?.[0] ?? ''
          const zone = valueOf(labels.zone)
          return { instanceType: name, zone, capacityType: valueOf(labels.capacityType), pricePerHour }
        }),
      )
      .filter(({ zone }) => allows(labels.zone, zone))
      .toSorted((a, b) => comparePrices(a.pricePerHour, b.pricePerHour))
  }
}

export interface GangStage {
  readonly stage: Stage
  readonly cloud: StockedCloud
}

export interface GangOptions {
  readonly types?: readonly InstanceType[]
  readonly pool?: Partial<NodePool['spec']>
  readonly settings?: Partial<Settings>
  readonly world?: Partial<WorldOptions>
  /** Whether PodGroups are served from the start. */
  readonly areServed?: boolean
}

/** With the feature gate on; the operator is started. */
export async function openGangs(
  t: TestContext,
  { types = [aType('type-4', 4)], pool, settings = {}, world = {}, areServed = true }: GangOptions = {},
): Promise<GangStage> {
  let stage: Stage | undefined
  const clock = () => (stage as Stage).world.clock
  const cloud = new StockedCloud(clock)
  cloud.clockOf = clock
  cloud.instanceTypes = types
  stage = await Stage.open(t, {
    idle: true,
    provider: cloud,
    ...(pool && { pool }),
    settings: { featureGates: { ...defaultSettings.featureGates, groupScheduling: true }, ...settings },
    ...world,
  })
  if (areServed) serveGroups(stage)
  await stage.start()
  return { stage, cloud }
}

/** The API server serves the groups of coscheduling and Volcano from now on. */
export function serveGroups(stage: Stage): void {
  for (const { group: apiGroup, version } of [podGroupKinds.coscheduling, podGroupKinds.volcano])
    serveKind(stage, apiGroup, [version])
}

/** Serves a kind PodGroup by a CustomResourceDefinition, in some versions. */
export function serveKind(stage: Stage, apiGroup: string, versions: readonly string[]): void {
  stage.world.create(crdKind, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `podgroups.${apiGroup}` },
    spec: {
      group: apiGroup,
      scope: 'Namespaced',
      names: { kind: 'PodGroup', plural: 'podgroups', singular: 'podgroup', listKind: 'PodGroupList' },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      })),
    },
  } as KubeObject)
}

/** A PodGroup of the scheduler plugin coscheduling. */
export function group(stage: Stage, name: string, minMember: number): void {
  stage.world.create(podGroupKinds.coscheduling, {
    apiVersion: 'scheduling.x-k8s.io/v1alpha1',
    kind: 'PodGroup',
    metadata: { name, namespace: 'default' },
    spec: { minMember },
  })
}

/** Pods of such a group, each for a node of its own, which the scheduler has refused. */
export function members(stage: Stage, name: string, count: number, from = 0, status = unscheduled()): void {
  for (let at = from; at < from + count; at++)
    waitingPod(stage, `${name}-${at}`, {
      cpu: '3',
      status,
      labels: { 'scheduling.x-k8s.io/pod-group': name },
    })
}

/** Claims that are not going away. */
export function liveClaims(stage: Stage): readonly NodeClaim[] {
  return stage.world.claims().filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** The instances of all claims join as Ready nodes of the names `node-CLAIM`. */
export async function joinAll(stage: Stage, claims = liveClaims(stage)): Promise<void> {
  for (const { metadata } of claims)
    if (stage.nodeNow(`node-${metadata.name}`) === undefined) await stage.join(metadata.name)
  for (const { metadata } of claims) await stage.report(`node-${metadata.name}`)
}

/** The scheduler binds a pod. */
export function bind(stage: Stage, name: string, node: string): void {
  const pod = stage.podNow(name) as Pod
  stage.world.cluster.server.local.delete(kinds.pod, 'default', name, { gracePeriodSeconds: 0 })
  const { resourceVersion: _, creationTimestamp: __, uid: ___, ...metadata } = pod.metadata
  stage.world.create(kinds.pod, { ...pod, metadata, spec: { ...pod.spec, nodeName: node } })
  stage.patch(kinds.pod, name, { status: { phase: 'Running' } }, 'status', 'default')
}

/** Whether the node of a claim still has the taint that keeps pods off. */
export function isClosed(stage: Stage, claim: string): boolean {
  return (stage.nodeNow(`node-${claim}`)?.spec?.taints ?? []).some(
    ({ key }) => key === 'karpenter.sh/unregistered',
  )
}
