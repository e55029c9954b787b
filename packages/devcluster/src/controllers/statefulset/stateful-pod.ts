import type { Pod, PodTemplateSpec } from '@tenon/api'
import { podFromTemplate } from '../objects/pod-factory.ts'
import { revisionHashLabel, templateOf } from '../objects/revision-history.ts'
import { type Claim, type ControllerRevision, type StatefulSet, workloads } from '../objects/workloads.ts'

const podNameLabel = 'statefulset.kubernetes.io/pod-name'
const podIndexLabel = 'apps.kubernetes.io/pod-index'

export function podNameAt(set: StatefulSet, ordinal: number): string {
  return `${set.metadata.name}-${ordinal}`
}

/** The ordinal in a pod's name, or -1 if the name does not belong to this set. */
export function ordinalOf(set: StatefulSet, pod: Pod): number {
  const prefix = `${set.metadata.name}-`
  const { name } = pod.metadata
  if (!name.startsWith(prefix)) return -1
  const text = name.slice(prefix.length)
  return /^(0|[1-9]\d*)$/.test(text) ? Number(text) : -1
}

export function claimName(templateName: string, podName: string): string {
  return `${templateName}-${podName}`
}

/** The pod of an ordinal and revision, with its identity and volumes. */
export function statefulPod(set: StatefulSet, ordinal: number, revision: ControllerRevision): Pod {
  const name = podNameAt(set, ordinal)
  const template: PodTemplateSpec = templateOf(revision)
  const pod = podFromTemplate(set, workloads.statefulSet, template, name)
  const templates = set.spec.volumeClaimTemplates ?? []
  const claimed = new Set(templates.map((claim) => claim.metadata.name))
  const volumes = [
    ...(pod.spec.volumes ?? []).filter((volume) => !claimed.has(volume.name)),
    ...templates.map(({ metadata }) => ({
      name: metadata.name,
      persistentVolumeClaim: { claimName: claimName(metadata.name, name) },
    })),
  ]
  const spec = {
    ...pod.spec,
    hostname: name,
    ...(set.spec.serviceName !== undefined && { subdomain: set.spec.serviceName }),
    ...(volumes.length > 0 && { volumes }),
  }
  const labels = {
    ...pod.metadata.labels,
    [revisionHashLabel]: revision.metadata.name,
    [podNameLabel]: name,
    [podIndexLabel]: String(ordinal),
  }
  return { ...pod, metadata: { ...pod.metadata, labels }, spec }
}

/** The claims of one pod. They outlive it and the set unless the retention policy says otherwise. */
export function claimsOf(set: StatefulSet, ordinal: number): Claim[] {
  const name = podNameAt(set, ordinal)
  return (set.spec.volumeClaimTemplates ?? []).map((template) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: claimName(template.metadata.name, name),
      namespace: set.metadata.namespace ?? 'default',
      labels: { ...template.metadata.labels, ...set.spec.selector.matchLabels },
      ...(template.metadata.annotations !== undefined && { annotations: template.metadata.annotations }),
    },
    spec: template.spec,
  }))
}
