/** Decisions about what a cluster state shows. */
import { ObservedPools } from './nodepools/observed-pools.ts'
import {
  type InstanceType,
  labels,
  type NodePool,
  type OfferingRef,
  parseResources,
  type Pod,
} from '@tenon/api'
import { schedule } from '@tenon/engine'
import { eventLoopTurns, silentLogger } from '@tenon/runtime'
import { sliceMs } from '../slice.ts'
import { type GatheredInput, SchedulingInputs } from '../provisioning/input/scheduling-input.ts'
import { defaultSettings } from '../settings.ts'
import { aPod, aPool } from './nodes/nodes.test-support.ts'
import { nodeClassKind, type ObservedCluster } from './observed-cluster.test-support.ts'

const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })

const type: InstanceType = {
  name: 'large',
  requirements: [is(labels.instanceType, 'large'), is(labels.zone, 'zone-1'), is(labels.os, 'linux')],
  offerings: [
    {
      requirements: [is(labels.zone, 'zone-1'), is(labels.capacityType, 'on-demand')],
      pricePerHour: 1,
      available: true,
    },
  ],
  capacity: parseResources({ cpu: '16', memory: '64Gi', pods: '110' }),
  overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
}

const provider = {
  nodeClasses: [nodeClassKind],
  wellKnownLabels: [],
  getInstanceTypes: () => Promise.resolve([type]),
}

/** NodePool `default`, ready to launch nodes of 16 cores in `zone-1`. */
export const readyPool: NodePool = {
  ...aPool(),
  status: {
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Ready',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
}

/** A pod that the Kubernetes scheduler has found no node for. */
export function aWaitingPod(
  name: string,
  spec: Partial<Pod['spec']> = {},
  metadata: Partial<Pod['metadata']> = {},
): Pod {
  const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' } as const]
  return { ...aPod(name, undefined, spec, metadata), status: { phase: 'Pending', conditions } }
}

/** What is known of launches under way. */
interface UnderWay {
  readonly offeringsOnTrial?: readonly OfferingRef[]
}

/** What is known of the cluster now, as the engine gets it. */
export async function gathered(
  { caches, clock, state }: ObservedCluster,
  { offeringsOnTrial = [] }: UnderWay = {},
): Promise<GatheredInput> {
  const observed = { caches, clock, state, settings: defaultSettings, provider, logger: silentLogger }
  const placementGate = {
    improvementFor: () => ({}),
    minor: 36,
    settled: () => Promise.resolve(),
  } as const
  const launchGuard = { onTrial: () => offeringsOnTrial }
  const inputs = new SchedulingInputs({
    ...observed,
    placementGate,
    launchGuard,
    choice: new ObservedPools(caches, defaultSettings).choice('acting'),
    slicing: { clock, turns: eventLoopTurns, sliceMs },
  })
  return await inputs.forPending(new AbortController().signal)
}

/** Where each waiting pod goes: to the node of a name, to a new one, or nowhere. */
export async function places(cluster: ObservedCluster): Promise<Readonly<Record<string, string>>> {
  const { placements, claims, failures } = schedule(await gathered(cluster))
  return Object.fromEntries([
    ...placements.map(({ pod, node }) => [pod.metadata.name, node]),
    ...claims.flatMap(({ pods }) => pods.map((pod) => [pod.metadata.name, 'new'])),
    ...failures.map(({ pod }) => [pod.metadata.name, 'nowhere']),
  ])
}
