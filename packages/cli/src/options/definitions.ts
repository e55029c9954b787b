/** Every option of `tenon controller`, for its parser, its help and docs/options.md (operations.md 2). */
import type { FlagDefinition } from '@tenon/api/flags'
import type { ProviderModule } from '@tenon/provider'
import { leaseName } from '../leader-annotations.ts'

export interface OptionDefinition extends FlagDefinition {
  readonly variable?: string
  /** Name of the value in help, for example `PATH`. */
  readonly takes: string
  readonly group: string
  /** The only provider that reads it. */
  readonly provider?: string
}

type Part = Omit<OptionDefinition, 'group'>

const group = (name: string, parts: readonly Part[]): readonly OptionDefinition[] =>
  parts.map((part) => ({ ...part, group: name }))

const choice = (flag: string, choices: readonly [string, ...string[]], meaning: string): Part => ({
  flag,
  variable: variableOf(flag),
  kind: 'choice',
  fallback: choices[0],
  choices,
  takes: 'NAME',
  meaning,
})
const integer = (flag: string, fallback: number, meaning: string): Part => ({
  flag,
  variable: variableOf(flag),
  kind: 'integer',
  fallback: String(fallback),
  takes: 'NUMBER',
  meaning,
})
const boolean = (flag: string, fallback: boolean, meaning: string): Part => ({
  flag,
  variable: variableOf(flag),
  kind: 'boolean',
  fallback: String(fallback),
  takes: 'true|false',
  meaning,
})
const duration = (flag: string, fallback: string, meaning: string): Part => ({
  flag,
  variable: variableOf(flag),
  kind: 'duration',
  fallback,
  takes: 'DURATION',
  meaning,
})
const text = (flag: string, takes: string, meaning: string, more: Partial<Part> = {}): Part => ({
  flag,
  variable: variableOf(flag),
  kind: 'text',
  fallback: '',
  takes,
  meaning,
  ...more,
})

function variableOf(flag: string): string {
  return flag.toUpperCase().replaceAll('-', '_')
}

const decisions = 'Decisions'
const withoutEffect = 'Accepted without effect'

/** Options that do not depend on the provider. */
export const coreOptions: readonly OptionDefinition[] = [
  ...group('Cluster and cloud', [
    text(
      'provider',
      'NAME',
      'Cloud provider: a name, the path of a provider module such as ./my-cloud.js, or an installed package. Required.',
      { variable: 'TENON_PROVIDER' },
    ),
    text('kubeconfig', 'PATH', 'Kubeconfig of the cluster. Without one, a pod uses its service account.', {
      variable: 'KUBECONFIG',
    }),
    {
      flag: 'context',
      kind: 'text',
      fallback: '',
      takes: 'NAME',
      meaning: 'Context of the kubeconfig; default: its current context.',
    },
    integer(
      'kube-client-qps',
      200,
      'Requests per second to the API server; no limit below 0. Lease renewals are not counted.',
    ),
    integer('kube-client-burst', 300, 'Requests that may be sent in a burst above the rate.'),
  ]),
  ...group(decisions, [
    duration(
      'batch-max-duration',
      '10s',
      'Maximum time that pending pods are batched before a scheduling pass.',
    ),
    duration('batch-idle-duration', '1s', 'Time without a new pending pod after which a batch ends.'),
    duration(
      'initialization-timeout',
      '15m',
      'Maximum time from the registration of a node to its initialization; then it is replaced. A NodePool can set its own with the annotation `tenon.sh/initialization-timeout` in spec.template.metadata, a duration or `Never`. Off with `--compatibility=karpenter`.',
    ),
    choice(
      'preference-policy',
      ['Respect', 'Ignore'],
      'Whether preferences of pods (preferred affinity, ScheduleAnyway) are respected if possible.',
    ),
    choice(
      'min-values-policy',
      ['Strict', 'BestEffort'],
      'Whether minValues of a NodePool are strict, or may be relaxed when nothing else fits.',
    ),
    text(
      'scheduler-config',
      'DOCUMENT',
      'YAML or JSON with podTopologySpread.defaultConstraints, for pods without topology spread constraints, and nodeResourcesFit.scoringStrategy, by which kube-scheduler chooses nodes, both as in its configuration.',
    ),
    {
      flag: 'ignore-dra-requests',
      variable: 'IGNORE_DRA_REQUESTS',
      kind: 'booleanOrAuto',
      fallback: 'auto',
      takes: 'true|false|auto',
      meaning:
        'Launch no nodes for pods with ResourceClaims. Otherwise nodes with the devices that they claim are launched where the API server serves resource.k8s.io/v1 and its objects may be read. auto means false, and true with `--compatibility=karpenter`.',
    },
    boolean(
      'vpa-predictions',
      true,
      'When pods are moved, count with the requests that VerticalPodAutoscalers will give them. Off with `--compatibility=karpenter`.',
    ),
    {
      flag: 'surge-on-drain',
      variable: 'SURGE_ON_DRAIN',
      kind: 'booleanOrAuto',
      fallback: 'false',
      takes: 'true|false|auto',
      meaning:
        'Restart Deployments before their pods are evicted from a node, so that new pods run first. With auto, only those with annotation `tenon.sh/surge-on-drain: "true"`. Needs the right to patch Deployments. Off with `--compatibility=karpenter`.',
    },
    boolean(
      'pod-deletion-cost',
      false,
      'Annotate pods of ReplicaSets with `controller.kubernetes.io/pod-deletion-cost`, so that scaling in empties those nodes first that consolidation would remove next. Needs the right to patch pods. Off with `--compatibility=karpenter`.',
    ),
    duration(
      'provisioning-request-booking-duration',
      '10m',
      'How long the room of a ProvisioningRequest is kept for its pods; used with the feature gate GroupScheduling.',
    ),
    text('feature-gates', 'NAME=true,…', 'Feature gates to set, see below.'),
    boolean(
      'observe-only',
      false,
      'Decide everything, keep it in the journal, and carry out nothing: no write to the cloud, and none to Kubernetes but of the lease. For a single NodePool: annotation `tenon.sh/mode: observe`.',
    ),
    boolean(
      'take-over',
      false,
      'Act also while another controller writes NodeClaims of the same NodePools. Without it, Tenon only observes until the other has been quiet for 10 min. Off with `--compatibility=karpenter`, which always acts.',
    ),
    text(
      'node-pools',
      'SELECTOR',
      'Serve only NodePools with these labels, such as `team=a`: for several controllers in one cluster. Each has a lease of its own, whose name ends with a hash of the selector. Experimental: while NodePools have nodes, change neither this nor their labels.',
    ),
    choice(
      'compatibility',
      ['none', 'karpenter'],
      'With karpenter, decisions are those of Karpenter: all additions of Tenon are off.',
    ),
    boolean(
      'auto-brake',
      true,
      'Pause voluntary disruption for 30 min after three failed replacements in a row in a NodePool, or when over a fifth of at least ten Ready nodes are lost within 5 min. Off with `--compatibility=karpenter`.',
    ),
  ]),
  ...group('Leader election', [
    boolean('disable-leader-election', false, 'Run without a lease. Only for a single replica.'),
    boolean(
      'accept-cluster-identity',
      false,
      'Take the cluster for the right one even when its identity (UID of namespace kube-system) is not the one on the Lease or may not be read, or it shows nothing of the instances there are. Give it once.',
    ),
    text('leader-election-name', 'NAME', 'Name of the Lease.', {
      kind: 'name',
      fallback: leaseName,
    }),
    text('leader-election-namespace', 'NAME', "Namespace of the Lease; in a pod the pod's own without this."),
    boolean(
      'disable-controller-warmup',
      true,
      'Accepted without effect: replicas that wait for the lease always watch the cluster, so that they can take over.',
    ),
  ]),
  ...group('Resources of this process', [
    integer(
      'cpu-requests',
      1000,
      'CPU of this process in thousandths of a core; controllers process more objects concurrently with more of it.',
    ),
    integer(
      'memory-limit',
      -1,
      'Memory limit of this process in bytes; above 90 % it frees caches. -1 for no limit.',
    ),
  ]),
  ...group('Metrics, probes and logs', [
    integer('metrics-port', 8080, 'Port of /metrics; 0 for a free one.'),
    boolean(
      'metrics-secure',
      false,
      'Serve /metrics over TLS, to clients whose bearer token the cluster knows and lets get /metrics. Needs --metrics-cert-path, and the rights to create tokenreviews and subjectaccessreviews.',
    ),
    text(
      'metrics-cert-path',
      'DIR',
      'Directory with tls.crt and tls.key for --metrics-secure, such as the mount of a Secret. Read again every 10 s.',
    ),
    integer('health-probe-port', 8081, 'Port of /healthz and /readyz; 0 for a free one.'),
    integer('debug-port', 8082, 'Port of /debug, only on the loopback address; 0 to disable.'),
    text(
      'journal-path',
      'DIR',
      'Directory for the journal, 256 MiB at most, so that it outlives the process; without one it is kept in memory only.',
    ),
    text(
      'record-path',
      'FILE',
      'File to record the cluster into, as `tenon record` does, for `tenon replay`. At 256 MiB it is put aside as FILE.1, and another one begins. Each replica needs a file of its own.',
    ),
    integer(
      'max-connections',
      100,
      'Maximum number of connections to the metrics port, and to the probe port.',
    ),
    boolean('enable-profiling', false, 'Serve /debug/pprof/ on the debug port.'),
    boolean(
      'disable-cluster-state-observability',
      false,
      'Omit the metrics of individual nodes, pods, NodePools and status conditions.',
    ),
    choice(
      'metrics-detail',
      ['full', 'reduced'],
      'With reduced, omit metrics with one series per pod or node; their number grows with the cluster.',
    ),
    text('log-level', 'LEVEL', 'Minimum log level. Can be changed at run time: PUT /debug/log-level.', {
      kind: 'choice',
      choices: ['', 'debug', 'info', 'error'],
      fallback: 'info',
    }),
    text('log-output-paths', 'PATHS', 'Where log lines go: stdout, stderr or files.', {
      kind: 'list',
      fallback: 'stdout',
    }),
    text('log-error-output-paths', 'PATHS', "Where the log's own failures go: stdout, stderr or files.", {
      kind: 'list',
      fallback: 'stderr',
    }),
  ]),
  ...group(withoutEffect, [text('karpenter-service', 'NAME', 'Used for webhooks in former versions.')]),
]

/** The options of `tenon controller` with these providers. */
export function optionDefinitionsOf(providers: readonly ProviderModule[]): readonly OptionDefinition[] {
  const own = providers.flatMap(({ name, options }) =>
    group(
      'Single providers',
      options.map((option) => ({ ...option, provider: name })),
    ),
  )
  const isIdle = (option: OptionDefinition): boolean => option.group === withoutEffect
  return [...coreOptions.filter((each) => !isIdle(each)), ...own, ...coreOptions.filter(isIdle)]
}

/** Options of `tenon controller` that say how it decides; those that share a cluster need leases and are not among them. */
export const decisionOptions: readonly OptionDefinition[] = coreOptions.filter(
  ({ flag, group: name }) => name === decisions && flag !== 'node-pools',
)

/** Options that Karpenter has removed, and what to do instead. */
export interface RetiredOption {
  readonly flag: string
  readonly variable: string
  readonly advice: string
}

const noWebhooks = 'there are no webhooks any more; remove it'

export const retiredOptions: readonly RetiredOption[] = [
  { flag: 'leader-elect', variable: 'LEADER_ELECT', advice: 'use disable-leader-election instead' },
  { flag: 'disable-webhook', variable: 'DISABLE_WEBHOOK', advice: noWebhooks },
  { flag: 'webhook-port', variable: 'WEBHOOK_PORT', advice: noWebhooks },
  { flag: 'webhook-metrics-port', variable: 'WEBHOOK_METRICS_PORT', advice: noWebhooks },
]

/** Variables of Karpenter's charts that nothing reads. */
export const unreadVariables: readonly string[] = ['KUBERNETES_MIN_VERSION', 'SYSTEM_NAMESPACE']

/** A feature gate of `--feature-gates` (operations.md 3). */
export interface GateDefinition {
  readonly name: string
  /** `auto`: depends on the version of the API server. */
  readonly fallback: boolean | 'auto'
  readonly meaning: string
  /** Whether it is a gate of Tenon only, and so off with `--compatibility=karpenter`. */
  readonly isOwn?: true
  /** Default with `--compatibility=karpenter`, if it differs. */
  readonly karpenterFallback?: boolean
}

export const gateDefinitions: readonly GateDefinition[] = [
  {
    name: 'NodeRepair',
    fallback: false,
    meaning: 'Replace nodes that are unhealthy for longer than the provider tolerates.',
  },
  { name: 'ReservedCapacity', fallback: true, meaning: 'Use reserved capacity first.' },
  {
    name: 'SpotToSpotConsolidation',
    fallback: false,
    meaning: 'Replace spot nodes with cheaper spot nodes.',
  },
  { name: 'NodeOverlay', fallback: false, meaning: 'Serve NodeOverlays; their CRD must be installed.' },
  {
    name: 'StaticCapacity',
    fallback: false,
    meaning: 'Keep NodePools with replicas at that number of nodes, independent of pods.',
  },
  {
    name: 'CapacityBuffer',
    fallback: true,
    karpenterFallback: false,
    meaning:
      'Keep nodes ready for the pods of CapacityBuffers, where their CRD is installed. Off with `--compatibility=karpenter` unless it is named.',
  },
  {
    name: 'GroupScheduling',
    fallback: true,
    meaning:
      'Launch nodes for the pods of a PodGroup (of Kubernetes, coscheduling or Volcano) or of a ProvisioningRequest all together or not at all, where these are served.',
    isOwn: true,
  },
  {
    name: 'PlannedPlacement',
    fallback: 'auto',
    meaning:
      'Nominate pods for the nodes they are planned on, which allows cheaper plans. Auto: on from Kubernetes 1.35.',
    isOwn: true,
  },
  {
    name: 'GlobalConsolidation',
    fallback: true,
    meaning:
      'Search for the cheapest set of nodes: several nodes may be replaced by several cheaper ones, not only by one.',
    isOwn: true,
  },
]
