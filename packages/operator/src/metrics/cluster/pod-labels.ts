/** What `karpenter_pods_state` tells of a pod (operations.md 9.2). */
import { labels, type Node, type Pod, ownValue } from '@tenon/api'

/** What a pod's series shows of the node the pod is on. */
export interface PodPlace {
  readonly node: Node | undefined
  readonly isManaged: boolean
}

/** Labels of the series of a pod; what is not known is empty. */
export function podLabels(pod: Pod, { node, isManaged }: PodPlace): Readonly<Record<string, string>> {
  const { metadata, spec, status } = pod
  const nodeName = spec.nodeName ?? ''
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    owner: ownerPath(pod),
    node: nodeName,
    scheduled: String(nodeName !== ''),
    ...nodeLabelsOf(node),
    phase: status?.phase ?? '',
    ready: String(isReady(pod)),
    managed: String(isManaged),
  }
}

/** What series of pods show of the labels of their node. */
export function nodeLabelsOf(node: Node | undefined): Readonly<Record<string, string>> {
  const tags = node?.metadata.labels ?? {}
  return {
    nodepool: tags[labels.nodePool] ?? '',
    zone: tags[labels.zone] ?? '',
    arch: tags[labels.arch] ?? '',
    capacity_type: tags[labels.capacityType] ?? '',
    instance_type: tags[labels.instanceType] ?? '',
  }
}

export function isReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
}

/** Path of the first owner as it would be in the API, if its plural were regular. */
function ownerPath({ metadata }: Pod): string {
  const [owner] = metadata.ownerReferences ?? []
  if (owner === undefined) return ''
  return `/apis/${owner.apiVersion}/namespaces/${metadata.namespace ?? ''}/${owner.kind.toLowerCase()}s/${owner.name}`
}

export function areSame(
  a: Readonly<Record<string, string>> | undefined,
  b: Readonly<Record<string, string>>,
): boolean {
  if (a === undefined) return false
  for (const name in b) if (ownValue(a, name) !== ownValue(b, name)) return false
  return true
}
