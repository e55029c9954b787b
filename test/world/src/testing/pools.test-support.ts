/** Words for stories about pods that wait for nodes. */
import {
  type InstanceType,
  karpenterKinds,
  kinds,
  labels,
  type NodeClaim,
  type NodePool,
  type ObjectMeta,
  type Pod,
  parseResources,
} from '@tenon/api'
import { ScriptedCloud } from './scripted-cloud.test-support.ts'
import type { Stage } from './stage.test-support.ts'

/** A scripted cloud whose types may differ from pool to pool, or fail to be listed. */
export class PoolCloud extends ScriptedCloud {
  /** Answers the types of a pool; may throw. */
  onListTypes: (pool: NodePool) => readonly InstanceType[] | Promise<readonly InstanceType[]> = () =>
    this.instanceTypes

  /** Version of the kubelets of new nodes. */
  kubeletVersion: (pool: NodePool) => string | undefined = () => undefined

  override async getInstanceTypes(pool?: NodePool): Promise<readonly InstanceType[]> {
    return pool === undefined ? this.instanceTypes : await this.onListTypes(pool)
  }
}

/** A type of 4 GiB a core at 5 cents a core and hour. */
export function aType(name: string, cpu: number, zones: readonly string[] = ['zone-1']): InstanceType {
  const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, 'amd64'),
      is(labels.os, 'linux'),
      is(labels.zone, ...zones),
      is(labels.capacityType, 'on-demand'),
    ],
    offerings: zones.map((zone) => ({
      requirements: [is(labels.zone, zone), is(labels.capacityType, 'on-demand')],
      pricePerHour: cpu * 0.05,
      available: true,
    })),
    capacity: parseResources({ cpu: String(cpu), memory: `${4 * cpu}Gi`, pods: '110' }),
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

export interface WaitingPod extends Partial<ObjectMeta> {
  readonly spec?: Partial<Pod['spec']>
  readonly status?: Pod['status']
  readonly cpu?: string
}

/** The status that the Kubernetes scheduler leaves on a pod it finds no node for. */
export function unscheduled(reason = 'Unschedulable'): NonNullable<Pod['status']> {
  return { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason }] }
}

/** A pod without a node, of a scheduler that is not there, with the status a test gives it. */
export function waitingPod(
  stage: Stage,
  name: string,
  { spec, status = unscheduled(), cpu = '1', ...metadata }: WaitingPod = {},
): Pod {
  const pod = stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...metadata },
    spec: {
      schedulerName: 'by-hand',
      containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }],
      ...spec,
    },
  })
  stage.patch(kinds.pod, name, { status }, 'status', 'default')
  return pod
}

/** Claims that the operator made, oldest first; those of a test have no generated name. */
export function madeClaims(stage: Stage): readonly NodeClaim[] {
  return stage.world
    .claims()
    .filter((claim) => claim.metadata.generateName !== undefined)
    .toSorted((a, b) =>
      (a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? -1 : 1,
    )
}

export function createPool(stage: Stage, pool: NodePool): void {
  stage.world.create(karpenterKinds.nodePool, pool)
}

/** Objects that the events of a reason are about. */
export function objectsWithEvent(stage: Stage, reason: string): readonly string[] {
  return stage.events(reason).map(({ object }) => object)
}
