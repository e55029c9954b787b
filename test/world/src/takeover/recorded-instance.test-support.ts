/** One NodeClaim and its Node in the states the Go Karpenter leaves them in (lifecycle.md 1 to 3, operations.md 12.4). */
import {
  type Condition,
  disruptedTaint,
  type KubeObject,
  type Node,
  type NodeClaim,
  type NodeClaimTemplateSpec,
  type Taint,
  unregisteredTaint,
} from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'

const finalizer = 'karpenter.sh/termination'
const hours = 3_600_000

/** What the claims of a pool take over from its template. */
export interface Template {
  readonly pool: string | undefined
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec: NodeClaimTemplateSpec
}

/** How far a claim has come; each stage implies the ones before. */
type Progress = 'created' | 'launched' | 'registered' | 'initialized'

/** What is special about an instance; the rest is as on any other. */
export interface InstanceParts {
  readonly progress: Progress
  /** Since when the last stage that was reached holds; the stages before came minutes earlier. */
  readonly sinceMs: number
  /** Whether the write of the last step got lost: the cloud, or the Node, knows more than the claim. */
  readonly isStatusLost?: boolean
  readonly conditions?: readonly Partial<Condition>[]
  readonly claimAnnotations?: Readonly<Record<string, string>>
  /** False: the claim carries no finalizer yet. */
  readonly hasFinalizer?: boolean
  /** Absent: the Node exists once the claim is launched. */
  readonly node?: {
    readonly isAbsent?: boolean
    readonly isRegistered?: boolean
    readonly isInitialized?: boolean
    readonly hasStartupTaints?: boolean
    readonly isDisrupted?: boolean
    readonly labels?: Readonly<Record<string, string>>
    /** Reported by nobody: such a node stays as it is recorded. */
    readonly isDead?: boolean
  }
}

const resources = { cpu: '1500m', memory: '1Gi', pods: '4' } as const
/** Of `c-4x-amd64-linux`, over what was asked for. */
const allocatable = {
  cpu: '3900m',
  memory: '8182Mi',
  pods: '64',
  'ephemeral-storage': '20Gi',
} as const

export const nodeNameOf = (claim: string): string => `kwok-${claim}-brave-otter-12-k2v9x0q4ab-2918845310`
export const providerIdOf = (claim: string): string => `kwok://${nodeNameOf(claim)}`

/** The claim; what belongs to its status is given apart, because it is written apart. */
export function recordedClaim(
  name: string,
  template: Template,
  parts: InstanceParts,
): { readonly object: NodeClaim; readonly status: NodeClaim['status'] } {
  const isLaunched = parts.progress !== 'created'
  const object: NodeClaim = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name,
      labels: isLaunched ? instanceLabels(name, template) : provisionerLabels(template),
      annotations: {
        ...template.annotations,
        'karpenter.sh/nodeclaim-min-values-relaxed': 'false',
        ...(isLaunched && { 'kwok.x-k8s.io/node': 'fake' }),
        ...parts.claimAnnotations,
      },
      ...(parts.hasFinalizer !== false && { finalizers: [finalizer] }),
    },
    spec: {
      ...template.spec,
      requirements: [
        ...template.spec.requirements,
        { key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['c-4x-amd64-linux'] },
        ...(template.pool === undefined
          ? []
          : [{ key: 'karpenter.sh/nodepool', operator: 'In' as const, values: [template.pool] }]),
      ],
      resources: { requests: resources },
    },
  }
  return { object, status: isLaunched ? launchedStatus(name, parts) : undefined }
}

/** The Node; undefined when there is none. */
export function recordedNode(name: string, template: Template, parts: InstanceParts): Node | undefined {
  const { node = {} } = parts
  if (node.isAbsent === true || (parts.progress === 'created' && parts.isStatusLost !== true))
    return undefined
  const isRegistered =
    node.isRegistered ?? (parts.progress === 'registered' || parts.progress === 'initialized')
  const startup = template.spec.startupTaints ?? []
  const taints: readonly Taint[] = [
    ...(isRegistered ? (template.spec.taints ?? []) : [unregisteredTaint]),
    ...(isRegistered && node.hasStartupTaints === true ? startup : []),
    ...(node.isDisrupted === true ? [disruptedTaint] : []),
  ]
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeNameOf(name),
      labels: {
        ...instanceLabels(name, template),
        ...(isRegistered && { 'karpenter.sh/registered': 'true' }),
        ...((node.isInitialized ?? parts.progress === 'initialized') && {
          'karpenter.sh/initialized': 'true',
        }),
        ...node.labels,
      },
      annotations: {
        ...template.annotations,
        'karpenter.sh/nodeclaim-min-values-relaxed': 'false',
        ...(node.isDead !== true && { 'kwok.x-k8s.io/node': 'fake' }),
      },
      ...(isRegistered && { finalizers: [finalizer] }),
    },
    spec: { providerID: providerIdOf(name), taints },
    status: {
      capacity: resources,
      allocatable: { ...resources, ...allocatable },
      phase: 'Pending',
      ...(node.isDead === true && { conditions: [deadCondition(parts.sinceMs)] }),
    },
  } as Node
}

/** How the Node of a claim names it. */
export function ownerOf(claim: KubeObject): NonNullable<Node['metadata']['ownerReferences']>[number] {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: claim.kind ?? '',
    name: claim.metadata.name,
    uid: claim.metadata.uid ?? '',
    blockOwnerDeletion: true,
  }
}

function provisionerLabels(template: Template): Readonly<Record<string, string>> {
  return {
    ...template.labels,
    'karpenter.kwok.sh/kwoknodeclass': template.spec.nodeClassRef.name,
    ...(template.pool !== undefined && { 'karpenter.sh/nodepool': template.pool }),
  }
}

function instanceLabels(name: string, template: Template): Readonly<Record<string, string>> {
  return {
    ...provisionerLabels(template),
    'eks-node-viewer/instance-price': '0.108590',
    'karpenter.kwok.sh/instance-cpu': '4',
    'karpenter.kwok.sh/instance-family': 'c',
    'karpenter.kwok.sh/instance-memory': '8Gi',
    'karpenter.kwok.sh/instance-size': '4',
    'karpenter.sh/capacity-type': 'on-demand',
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': 'linux',
    'kwok-partition': 'a',
    'kwok.x-k8s.io/node': 'fake',
    'node.kubernetes.io/instance-type': 'c-4x-amd64-linux',
    'topology.kubernetes.io/zone': 'test-zone-b',
  }
}

function launchedStatus(name: string, parts: InstanceParts): NodeClaim['status'] {
  const hasNode = parts.progress === 'registered' || parts.progress === 'initialized'
  return {
    providerID: providerIdOf(name),
    capacity: resources,
    allocatable: { ...resources, ...allocatable },
    ...(hasNode && { nodeName: nodeNameOf(name) }),
    ...(parts.progress === 'initialized' && { lastPodEventTime: rfc3339(parts.sinceMs + hours / 2) }),
    conditions: conditionsOf(parts),
  }
}

/** As the Go version stores them: ordered by their times, `Ready` last. */
function conditionsOf({ progress, sinceMs, conditions = [] }: InstanceParts): readonly Condition[] {
  const stages = ['Launched', 'Registered', 'Initialized']
  const reached = { created: 0, launched: 1, registered: 2, initialized: 3 }[progress]
  const known = stages.map((type, i) =>
    i < reached
      ? complete({ type, lastTransitionTime: rfc3339(sinceMs - (reached - 1 - i) * 30_000) })
      : complete({
          type,
          status: 'Unknown',
          reason: i === reached ? (openReasons[i] ?? '') : 'AwaitingReconciliation',
          message: i === reached ? (openMessages[i] ?? '') : 'object is awaiting reconciliation',
          lastTransitionTime: rfc3339(sinceMs),
        }),
  )
  const open = stages.slice(reached)
  const ready = complete(
    open.length === 0
      ? { type: 'Ready', lastTransitionTime: rfc3339(sinceMs) }
      : {
          type: 'Ready',
          status: 'Unknown',
          reason: 'ReconcilingDependents',
          message: open.map((type) => `${type}=Unknown`).join(', '),
          lastTransitionTime: rfc3339(sinceMs),
        },
  )
  const own = conditions.map((condition) => complete({ lastTransitionTime: rfc3339(sinceMs), ...condition }))
  const consistent =
    reached > 0 ? [complete({ type: 'ConsistentStateFound', lastTransitionTime: rfc3339(sinceMs) })] : []
  const others = [...known, ...consistent, ...own].toSorted((a, b) =>
    a.lastTransitionTime < b.lastTransitionTime ? -1 : Number(a.lastTransitionTime > b.lastTransitionTime),
  )
  return [...others, ready]
}

const openReasons = ['AwaitingReconciliation', 'NodeNotFound', 'StartupTaintsExist']
const openMessages = [
  'object is awaiting reconciliation',
  'Node not registered with cluster',
  'StartupTaint "example.com/agent-not-ready:NoSchedule" still exists',
]

function complete(condition: Partial<Condition>): Condition {
  const { type = '', status = 'True', reason = type, message = '' } = condition
  return {
    type,
    status,
    reason,
    message,
    lastTransitionTime: condition.lastTransitionTime ?? '',
    observedGeneration: condition.observedGeneration ?? 1,
  }
}

function deadCondition(sinceMs: number): object {
  const at = rfc3339(sinceMs)
  return {
    type: 'Ready',
    status: 'False',
    reason: 'KubeletNotReady',
    message: 'container runtime is down',
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  }
}
