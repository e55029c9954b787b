/** How fast simulated nodes and pods change state, in milliseconds. */
export interface KwokDelays {
  /** From a Node's creation to its condition Ready. */
  readonly nodeReadyMs: number
  /** From a pod's binding to its condition Ready. */
  readonly podReadyMs: number
}

const defaultKwokDelays: KwokDelays = { nodeReadyMs: 300, podReadyMs: 100 }

interface StageParts {
  readonly selector: readonly SelectorTerm[]
  readonly delayMs?: number
  readonly next: { readonly statusTemplate: string } | { readonly delete: true }
}

interface SelectorTerm {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values?: readonly string[]
}

/**
 * On real nodes each kubelet writes for itself; with kwok's default of 4 the pods of all nodes wait in one
 * queue. A configuration replaces all of kwok's defaults, hence the rest.
 */
const configuration = {
  apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
  kind: 'KwokConfiguration',
  options: {
    podPlayStageParallelism: 32,
    nodePlayStageParallelism: 16,
    nodeLeaseParallelism: 16,
    podsOnNodeSyncParallelism: 4,
    enablePodsOnNodeSyncListPager: true,
  },
} as const

const readyStatus = '.status.conditions.[] | select( .type == "Ready" ) | .status'
const notDeleted: SelectorTerm = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' }

/**
 * kwok's configuration file. Any node that is not Ready becomes Ready and keeps its capacity (operations sheet,
 * 12.5); bound pods run, pods of Jobs complete, deleted pods are removed immediately.
 * @param kubeletVersion reported by nodes that were created without one, such as `v1.36.3`.
 */
export function kwokStages(kubeletVersion: string, delays: KwokDelays = defaultKwokDelays): string {
  const stages = [
    stage('Node', 'node-initialize', {
      selector: [notDeleted, { key: readyStatus, operator: 'NotIn', values: ['True'] }],
      delayMs: delays.nodeReadyMs,
      next: { statusTemplate: nodeInitialized(kubeletVersion) },
    }),
    stage('Node', 'node-heartbeat', {
      selector: [notDeleted, { key: readyStatus, operator: 'In', values: ['True'] }],
      // The lease is the heartbeat; the status is repeated as rarely as a kubelet does.
      delayMs: 300_000,
      next: { statusTemplate: nodeConditions },
    }),
    stage('Pod', 'pod-ready', {
      selector: [notDeleted, { key: '.status.phase', operator: 'In', values: ['Pending'] }],
      delayMs: delays.podReadyMs,
      next: { statusTemplate: podRunning },
    }),
    stage('Pod', 'pod-complete', {
      selector: [
        notDeleted,
        { key: '.status.phase', operator: 'In', values: ['Running'] },
        { key: '.metadata.ownerReferences.[].kind', operator: 'In', values: ['Job'] },
      ],
      next: { statusTemplate: podSucceeded },
    }),
    stage('Pod', 'pod-delete', {
      selector: [{ key: '.metadata.deletionTimestamp', operator: 'Exists' }],
      next: { delete: true },
    }),
  ]
  // kwok reads a stream of YAML documents, and JSON is YAML.
  return [configuration, ...stages].map((document) => `---\n${JSON.stringify(document, null, 2)}\n`).join('')
}

function stage(kind: 'Node' | 'Pod', name: string, parts: StageParts): object {
  return {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: 'v1', kind },
      selector: { matchExpressions: parts.selector },
      ...(parts.delayMs === undefined ? {} : { delay: { durationMilliseconds: parts.delayMs } }),
      next: parts.next,
    },
  }
}

/** Keeps the transition time of an unchanged condition. */
const nodeConditions = `
{{ $now := Now }}
{{ $known := .status.conditions }}
conditions:
{{ range $condition := NodeConditions }}
{{ $since := $now }}
{{ range $known }}
{{ if and (eq .type $condition.type) (eq .status $condition.status) }}
{{ $since = or .lastTransitionTime $now }}
{{ end }}
{{ end }}
- type: {{ $condition.type | Quote }}
  status: {{ $condition.status | Quote }}
  reason: {{ $condition.reason | Quote }}
  message: {{ $condition.message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $since | Quote }}
{{ end }}
`

function nodeInitialized(kubeletVersion: string): string {
  return `${nodeConditions}
phase: Running
addresses:
- type: InternalIP
  address: {{ NodeIP | Quote }}
- type: Hostname
  address: {{ NodeName | Quote }}
capacity: {{ with .status.capacity }}{{ YAML . 1 }}{{ else }}{ cpu: "32", memory: 64Gi, pods: "110" }{{ end }}
allocatable: {{ with .status.allocatable }}{{ YAML . 1 }}{{ else }}{ cpu: "32", memory: 64Gi, pods: "110" }{{ end }}
{{ $labels := or .metadata.labels dict }}
nodeInfo:
  architecture: {{ or (index $labels "kubernetes.io/arch") "amd64" | Quote }}
  operatingSystem: {{ or (index $labels "kubernetes.io/os") "linux" | Quote }}
  kubeletVersion: {{ or (index (or .status.nodeInfo dict) "kubeletVersion") ${JSON.stringify(kubeletVersion)} | Quote }}
  kubeProxyVersion: ""
  containerRuntimeVersion: {{ printf "kwok://%s" Version | Quote }}
  kernelVersion: kwok
  osImage: kwok
  bootID: {{ or .metadata.uid "" | Quote }}
  machineID: {{ or .metadata.uid "" | Quote }}
  systemUUID: {{ or .metadata.uid "" | Quote }}
`
}

const podRunning = `
{{ $now := Now }}
{{ $pod := . }}
phase: Running
startTime: {{ $now | Quote }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ with PodIPsWith $pod.spec.nodeName (or $pod.spec.hostNetwork false) (or $pod.metadata.uid "") $pod.metadata.name $pod.metadata.namespace }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
conditions:
{{ range list "PodReadyToStartContainers" "Initialized" "ContainersReady" "Ready" }}
- type: {{ . | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
{{ range .spec.readinessGates }}
- type: {{ .conditionType | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
{{ with .spec.initContainers }}
initContainerStatuses:
{{ range . }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
{{ if eq (or .restartPolicy "") "Always" }}
  started: true
  state: { running: { startedAt: {{ $now | Quote }} } }
{{ else }}
  started: false
  state: { terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } }
{{ end }}
{{ end }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: { running: { startedAt: {{ $now | Quote }} } }
{{ end }}
`

const podSucceeded = `
{{ $now := Now }}
phase: Succeeded
conditions:
{{ range list "ContainersReady" "Ready" }}
- type: {{ . | Quote }}
  status: "False"
  reason: PodCompleted
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: { terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} } }
{{ end }}
`
