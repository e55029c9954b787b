/** The story of a simulation: everything that a run depends on, as data. */

/** How frequent faults are. */
export type FaultLevel = 'none' | 'low' | 'high' | 'storm'

export const faultLevels: readonly FaultLevel[] = ['none', 'low', 'high', 'storm']

/** Clouds that a story may use. */
export const cloudNames = ['exoscale', 'clever-cloud', 'cluster-api'] as const

export type CloudName = (typeof cloudNames)[number]

/** Kinds of faults. Each has its own random source, so one can be omitted without affecting the others. */
export const faultKinds = [
  /** 409 for a write. */
  'conflict',
  /** 429 with Retry-After. */
  'throttle',
  /** 5xx before the effect. */
  'serverError',
  /** The connection breaks before the effect. */
  'lostRequest',
  /** The write takes effect, its response is lost. */
  'lostReply',
  /** No response until the client's timeout; half of the time with the effect. */
  'timeout',
  /** Lists take seconds. */
  'slowList',
  /** An earlier response to the same list; in stories of node groups only. */
  'staleList',
  /** A successful status with a wrong body; half of the time after the effect. */
  'wrongReply',
  /** Watches break. */
  'watchDrop',
  /** Watches end with 410. */
  'watchGone',
  /** Watch events are delayed, by another time for each kind, so that kinds overtake each other. */
  'watchDelay',
  'cloudRefusal',
  'cloudLostRequest',
  'cloudLostReply',
  'cloudWrongReply',
  /** Types and the whole zone run out of capacity. */
  'drought',
  'failedOperation',
  /** A deletion is accepted and then fails: the instance continues to run. */
  'failedDeletion',
  /** A creation stays pending, and deletions take half an hour. */
  'hangingOperation',
  'neverBoots',
  'neverJoins',
  /** The instance joins, but its node never becomes ready. */
  'neverReady',
  /** Guests see less memory than nominal: slightly less in three of four worlds, much less for a while. */
  'smallGuests',
  /** Clever Cloud: an error that the platform retries by itself. */
  'upstreamError',
  /** Clever Cloud: nodes come minutes late. */
  'slowSync',
  /** Clever Cloud: accepted NodeGroups vanish. */
  'groupVanishes',
  /** Clever Cloud: a user deletes a NodeGroup. */
  'groupDeleted',
  /** Clever Cloud: a user changes the node count of a NodeGroup. */
  'groupResized',
  /** Clever Cloud: the platform's own autoscaler is on. */
  'ownAutoscaler',
  /** Clever Cloud: a user creates a NodeGroup with the labels of a claim's own. */
  'foreignGroup',
  /** Cluster API: its controller of MachineDeployments lags by minutes. */
  'laggingController',
  /** Cluster API: a user deletes a Machine. */
  'machineDeleted',
  /** Cluster API: a user changes the replicas of a MachineDeployment. */
  'replicasEdited',
  /** Cluster API: a user changes the template of a MachineDeployment, which rolls. */
  'templateRolled',
  /** Cluster API: a user pauses a MachineDeployment for a while. */
  'deploymentPaused',
  /** Instances disappear. */
  'instanceDeath',
  /** Kubelets stop reporting, for seconds or for minutes. */
  'silentKubelet',
  /** A device driver crashes: its ResourceSlices disappear for seconds or minutes. */
  'driverCrash',
  /** The controller's process crashes, at a write or between two. */
  'crash',
  /** The controllers stop cleanly and start again with other options. */
  'reconfigure',
  /** The controller's process is paused. */
  'pause',
  /** The wall clock of the controller's host jumps. */
  'clockJump',
  /** The controller's process gets so little CPU that it pauses for seconds again and again. */
  'starvation',
  /** Watch events of one, some or all kinds are delayed by up to five minutes. */
  'lateWatch',
  /** One list of a kind is empty, incomplete, or outdated. */
  'wrongList',
  /** A watch reports the deletion of existing objects. */
  'falseDeletion',
  /** Another cluster's server responds for a while. */
  'otherCluster',
  /** Exoscale: reads miss a new instance, for seconds or up to ten minutes. */
  'laggingCloud',
  /**
   * Exoscale: a creation is reported wrongly or made twice, or an instance is shown with a wrong age or wrong
   * labels.
   */
  'lyingCloud',
  /** A scheduler plugin rejects some pods on some nodes for a while. */
  'stubbornScheduler',
  /** A kubelet restarts with another name. */
  'renamedKubelet',
  /** From the start, in half of the seeds, NodePools have labels that a kubelet may not set. */
  'kubeletLabels',
] as const

export type FaultKind = (typeof faultKinds)[number]

/** The kinds that affect requests to the API server. */
export const apiFaultKinds: readonly FaultKind[] = [
  'conflict',
  'throttle',
  'serverError',
  'lostRequest',
  'lostReply',
  'timeout',
  'wrongReply',
]

/** Kinds of workload; each has its own random source. */
export const workloadKinds = [
  'deployments',
  'daemonSets',
  'jobs',
  'statefulSets',
  'bursts',
  'dailyWaves',
  'disruptionBudgets',
  'priorities',
  'affinities',
  'spreads',
  'gpus',
  'doNotDisrupt',
  'barePods',
  'poolEdits',
  'priceChanges',
  'classDrift',
  'templateUpgrades',
  'manualDeletions',
  'expiry',
  'staticPools',
  'unsatisfiable',
  /** Nodes are replaced by cheaper ones, instead of only being removed when empty. */
  'consolidation',
  /** Applications with one pod per node that are stopped and soon started again. */
  'restarts',
  /** Templates of NodePools change every few minutes. */
  'poolRollouts',
  /** Users protect single nodes for a while. */
  'protectedNodes',
  /** Users remove the finalizers of starting claims. */
  'abandonedClaims',
  /** CapacityBuffers, and pods that use their capacity; only in stories that name the kind. */
  'buffers',
  /** Pods that claim GPUs as devices, whose drivers publish late; only in stories that name the kind, at Exoscale. */
  'devices',
  /** PodGroups, with their feature gate; only in stories that name the kind. */
  'gangs',
  /** Additions that users switch on: quotas, repair, surges, expiration, windows; only in stories that name the kind. */
  'wanted',
] as const

export type WorkloadKind = (typeof workloadKinds)[number]

/** One run. The same story yields the same events, bit for bit. */
export interface Story {
  readonly seed: number
  /** Virtual hours with workload and faults; the calm phase is added. */
  readonly hours: number
  /** Approximate number of nodes that the workload usually fills. */
  readonly nodes: number
  readonly faults: FaultLevel
  readonly withoutFaults: readonly FaultKind[]
  readonly withoutWorkloads: readonly WorkloadKind[]
  /** Kinds that are included whatever the seed. */
  readonly withWorkloads?: readonly WorkloadKind[]
  /** Default: Exoscale. */
  readonly provider?: CloudName
  /** Name of a planted bug. */
  readonly mutation?: string
}

export const cloudOfStory = ({ provider = 'exoscale' }: Pick<Story, 'provider'>): CloudName => provider

/** Whether expensive parts of the world are coarser because of its size. */
export const isLarge = ({ nodes }: Pick<Story, 'nodes'>): boolean => nodes >= 50

/** A story without omissions. */
export function aStory(seed: number, change: Partial<Story> = {}): Story {
  return { seed, hours: 2, nodes: 15, faults: 'high', withoutFaults: [], withoutWorkloads: [], ...change }
}

/** @throws Error naming the first invalid field. */
export function parseStory(value: unknown): Story {
  const fields = value as Partial<Record<keyof Story, unknown>> | null
  if (typeof fields !== 'object' || fields === null) throw new Error('the trace holds no story')
  const { seed, hours, nodes, faults, withoutFaults, withoutWorkloads, withWorkloads, provider, mutation } =
    fields
  return {
    seed: numberField('seed', seed),
    hours: numberField('hours', hours),
    nodes: numberField('nodes', nodes),
    faults: oneOf('faults', faults, faultLevels),
    withoutFaults: listField('withoutFaults', withoutFaults, faultKinds),
    withoutWorkloads: listField('withoutWorkloads', withoutWorkloads, workloadKinds),
    ...(withWorkloads !== undefined && {
      withWorkloads: listField('withWorkloads', withWorkloads, workloadKinds),
    }),
    ...(provider !== undefined && { provider: oneOf('provider', provider, cloudNames) }),
    ...(typeof mutation === 'string' && { mutation }),
  }
}

function numberField(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw new Error(`the story's ${name} must be a number of at least 0`)
}

function oneOf<T extends string>(name: string, value: unknown, known: readonly T[]): T {
  const found = known.find((each) => each === value)
  if (found === undefined) throw new Error(`the story's ${name} must be one of ${known.join(', ')}`)
  return found
}

function listField<T extends string>(name: string, value: unknown, known: readonly T[]): readonly T[] {
  if (!Array.isArray(value)) throw new Error(`the story's ${name} must be a list`)
  return value.map((each) => oneOf(name, each, known))
}
