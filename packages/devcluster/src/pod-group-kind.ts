/** The PodGroup kind of the embedded cluster (gangs.md 5.2). */
import type { PodGroup, ResourceType } from '@tenon/api'
import type { LocalApi } from './contract.ts'

export const podGroupKind: ResourceType<PodGroup> = {
  group: 'scheduling.k8s.io',
  version: 'v1alpha2',
  kind: 'PodGroup',
  plural: 'podgroups',
  namespaced: true,
}

/** Keeps a PodGroup until its pods have finished. */
export const podGroupFinalizer = 'scheduling.k8s.io/podgroup-protection'

/** Feature gates of Kubernetes that can be turned off. */
export interface KubernetesGates {
  /** PodGroups are served, and pods may belong to them (gangs.md 5.1). */
  readonly genericWorkload: boolean
  /** PodGroups may require one domain of a node label. */
  readonly topologyAwareWorkloadScheduling: boolean
}

export const allGates: KubernetesGates = { genericWorkload: true, topologyAwareWorkloadScheduling: true }

export function servesPodGroups(api: Pick<LocalApi, 'definitions'>): boolean {
  return api
    .definitions()
    .some(
      ({ group, version, plural }) =>
        group === podGroupKind.group && version === podGroupKind.version && plural === podGroupKind.plural,
    )
}
