/** The story of a simulation: everything that a run depends on, as data. */

/** How much goes wrong. */
export type FaultLevel = 'none' | 'low' | 'high' | 'storm'

export const faultLevels: readonly FaultLevel[] = ['none', 'low', 'high', 'storm']

/** Clouds that a story may be played at. */
export const cloudNames = ['exoscale', 'clever-cloud', 'cluster-api'] as const

export type CloudName = (typeof cloudNames)[number]

/** What may go wrong; each kind draws from a random source of its own, so one can be omitted. */
export const faultKinds = [
  /** 409 to a write. */
  'conflict',
  /** 429 with Retry-After. */
  'throttle',
  /** 5xx before the effect. */
  'serverError',
  /** The connection breaks before the effect. */
  'lostRequest',
  /** The write takes effect, its answer is lost. */
  'lostReply',
  /** No answer until the client gives up; half of the time with the effect. */
  'timeout',
  /** Lists take seconds. */
  'slowList',
  /** A list as it was when the same was asked before; in stories of node groups only. */
  'staleList',
  /** A good status, and an answer that is not what was asked for; half of the time after the effect. */
  'wrongReply',
  /** Watches break. */
  'watchDrop',
  /** Watches end with 410. */
  'watchGone',
  /** Watches tell late, each kind by its own delay, so that kinds overtake each other. */
  'watchDelay',
  'cloudRefusal',
  'cloudLostRequest',
  'cloudLostReply',
  'cloudWrongReply',
  /** Types and the whole zone run out. */
  'drought',
  'failedOperation',
  /** A deletion that is accepted and then fails: the instance goes on. */
  'failedDeletion',
  /** A creation that stays pending, and deletions that take half an hour. */
  'hangingOperation',
  'neverBoots',
  'neverJoins',
  /** The instance joins, and its node never gets ready. */
  'neverReady',
  /** Guests see less memory than their type has: a little in three of four worlds, more of it for a while. */
  'smallGuests',
  /** Clever Cloud: what the platform tries again by itself. */
  'upstreamError',
  /** Clever Cloud: nodes come minutes late. */
  'slowSync',
  /** Clever Cloud: accepted NodeGroups vanish. */
  'groupVanishes',
  /** Clever Cloud: a user deletes a NodeGroup. */
  'groupDeleted',
  /** Clever Cloud: a user asks for another number of nodes of a NodeGroup. */
  'groupResized',
  /** Clever Cloud: the platform's own autoscaler is on. */
  'ownAutoscaler',
  /** Clever Cloud: a user makes a NodeGroup with the labels of a claim's own. */
  'foreignGroup',
  /** Cluster API: its controller of MachineDeployments lags by minutes. */
  'laggingController',
  /** Cluster API: a user deletes a Machine. */
  'machineDeleted',
  /** Cluster API: a user asks for other replicas of a MachineDeployment. */
  'replicasEdited',
  /** Cluster API: a user changes the template of a MachineDeployment, which rolls. */
  'templateRolled',
  /** Cluster API: a user pauses a MachineDeployment for a while. */
  'deploymentPaused',
  /** Instances vanish. */
  'instanceDeath',
  /** Kubelets fall silent, for seconds or for minutes. */
  'silentKubelet',
  /** A driver of devices crashes: what it published is gone for seconds or minutes. */
  'driverCrash',
  /** The controller's process dies, at a write or between two. */
  'crash',
  /** The controllers end cleanly and start again with other options. */
  'reconfigure',
  /** The controller's process stands still. */
  'pause',
  /** The wall clock of the controller's host jumps. */
  'clockJump',
  /** The controller's process gets so little CPU that it stands still for seconds again and again. */
  'starvation',
  /** Watches of one kind, of some or of all tell up to five minutes late. */
  'lateWatch',
  /** One list of a kind is empty, half, or as it was at first. */
  'wrongList',
  /** A watch tells that objects were deleted which are there. */
  'falseDeletion',
  /** For a while another cluster's server answers. */
  'otherCluster',
  /** Exoscale: reads miss a new instance, for seconds or up to ten minutes. */
  'laggingCloud',
  /** Exoscale: instances are made and refused, refused and made, made twice, or shown with a wrong age or wrong labels. */
  'lyingCloud',
  /** A plugin of the scheduler refuses some pods on some nodes for a while. */
  'stubbornScheduler',
  /** A kubelet comes back under another name. */
  'renamedKubelet',
  /** From the start NodePools have labels that a kubelet may not set; in half of the seeds. */
  'kubeletLabels',
] as const

export type FaultKind = (typeof faultKinds)[number]

/** Those that strike a request to the API server. */
export const apiFaultKinds: readonly FaultKind[] = [
  'conflict',
  'throttle',
  'serverError',
  'lostRequest',
  'lostReply',
  'timeout',
  'wrongReply',
]

/** What the cluster is asked to do; each kind draws from a random source of its own. */
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
  /** Nodes are emptied and replaced by cheaper ones, not only removed once they are empty. */
  'consolidation',
  /** Applications with a node for each pod that are stopped, and started again soon. */
  'restarts',
  /** Templates of NodePools change every few minutes. */
  'poolRollouts',
  /** People protect single nodes for a while. */
  'protectedNodes',
  /** People take the finalizers off claims that are starting. */
  'abandonedClaims',
  /** CapacityBuffers, and pods that come for the room; only in stories that name it. */
  'buffers',
  /** Pods that claim GPUs as devices, whose drivers publish late; only in stories that name it, at Exoscale. */
  'devices',
  /** PodGroups, with the feature gate for them; only in stories that name it. */
  'gangs',
] as const

export type WorkloadKind = (typeof workloadKinds)[number]

/** One run. The same story gives the same events, bit for bit. */
export interface Story {
  readonly seed: number
  /** Virtual hours with workload and faults; the calm after them comes on top. */
  readonly hours: number
  /** Nodes that the workload fills at its usual height, roughly. */
  readonly nodes: number
  readonly faults: FaultLevel
  readonly withoutFaults: readonly FaultKind[]
  readonly withoutWorkloads: readonly WorkloadKind[]
  /** Kinds that play a part whatever the seed says. */
  readonly withWorkloads?: readonly WorkloadKind[]
  /** The cloud, unless it is Exoscale. */
  readonly provider?: CloudName
  /** Name of a planted bug. */
  readonly mutation?: string
}

/** The cloud that a story is played at. */
export const cloudOfStory = ({ provider = 'exoscale' }: Pick<Story, 'provider'>): CloudName => provider

/** Whether a world is so large that what costs much and shows little is coarser in it. */
export const isLarge = ({ nodes }: Pick<Story, 'nodes'>): boolean => nodes >= 50

/** A story without anything omitted. */
export function aStory(seed: number, change: Partial<Story> = {}): Story {
  return { seed, hours: 2, nodes: 15, faults: 'high', withoutFaults: [], withoutWorkloads: [], ...change }
}

/** @throws Error naming the first field that is wrong. */
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
