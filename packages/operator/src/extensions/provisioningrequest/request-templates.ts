/** Placeholder pods of a ProvisioningRequest, from its pod templates (gangs.md 2.2). */
import {
  type Pod,
  type PodTemplate,
  type PodTemplateSpec,
  type ProvisioningRequest,
  requestPods,
  type RequestSet,
  requestSets,
} from '@tenon/api'
import { renderPodProblems, shapeProblems } from '@tenon/engine'
import type { Cache } from '@tenon/kube'
import type { Caches } from '../../state/caches.ts'

export type Resolution =
  | {
      readonly kind: 'resolved'
      /** The pods of each set, in order. */
      readonly sets: readonly (readonly Pod[])[]
      readonly topologyKey: string | undefined
    }
  /** The templates are not read yet. */
  | { readonly kind: 'unknown' }
  /** A template does not exist or is invalid. */
  | { readonly kind: 'failed'; readonly message: string }

/** Kueue sets it on pod templates: all pods of the set go to one domain of the label. */
const topologyAnnotation = 'kueue.x-k8s.io/podset-required-topology'

export function resolveRequest(
  request: ProvisioningRequest,
  podTemplates: Cache<PodTemplate> | undefined,
  persistentVolumeClaims: Caches['persistentVolumeClaims'],
): Resolution {
  if (podTemplates === undefined || !podTemplates.isSynced) return { kind: 'unknown' }
  const { namespace = '' } = request.metadata
  const found = requestSets(request, (name) => podTemplates.get({ namespace, name }), problemOf)
  if (found.kind === 'failed') return found
  const { sets } = found
  const hasClaim = (name: string) => persistentVolumeClaims.get({ namespace, name }) !== undefined
  return {
    kind: 'resolved',
    sets: requestPods(request, sets, hasClaim),
    topologyKey: commonTopology(sets),
  }
}

function problemOf({ spec }: PodTemplateSpec): string | undefined {
  const problems = shapeProblems({ apiVersion: 'v1', kind: 'Pod', metadata: { name: '' }, spec })
  return problems && renderPodProblems(problems)
}

/** Undefined unless all sets ask for the same domain. */
function commonTopology(sets: readonly RequestSet[]): string | undefined {
  const [first, ...others] = sets.map(({ template }) => template.metadata?.annotations?.[topologyAnnotation])
  return first !== undefined && first !== '' && others.every((key) => key === first) ? first : undefined
}
