/** What the pods of a ProvisioningRequest are made from (gangs.md 2.2). */
import {
  type Pod,
  type PodTemplateSpec,
  type ProvisioningRequest,
  requestPods,
  type RequestSet,
  requestSets,
} from '@tenon/api'
import { renderPodProblems, shapeProblems } from '@tenon/engine'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'persistentVolumeClaims'>
  readonly state: Pick<ClusterState, 'requests'>
}

/** The pods that a request comes to. */
export type Resolution =
  | {
      readonly kind: 'resolved'
      /** Of each set, in order. */
      readonly sets: readonly (readonly Pod[])[]
      readonly topologyKey: string | undefined
    }
  /** The templates are not read yet. */
  | { readonly kind: 'unknown' }
  /** A template is not there, or cannot be read. */
  | { readonly kind: 'failed'; readonly message: string }

/** On pod templates, by Kueue: all pods of the set go to one domain of the label. */
const topologyAnnotation = 'kueue.x-k8s.io/podset-required-topology'

export class RequestTemplates {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  of(request: ProvisioningRequest): Resolution {
    const { caches, state } = this.#deps
    const { namespace = '' } = request.metadata
    const podTemplates = state.requests.caches?.podTemplates
    if (podTemplates === undefined || !podTemplates.isSynced) return { kind: 'unknown' }
    const found = requestSets(request, (name) => podTemplates.get({ namespace, name }), problemOf)
    if (found.kind === 'failed') return found
    const { sets } = found
    const hasClaim = (name: string) => caches.persistentVolumeClaims.get({ namespace, name }) !== undefined
    return {
      kind: 'resolved',
      sets: requestPods(request, sets, hasClaim),
      topologyKey: commonTopology(sets),
    }
  }
}

function problemOf({ spec }: PodTemplateSpec): string | undefined {
  const problems = shapeProblems({ apiVersion: 'v1', kind: 'Pod', metadata: { name: '' }, spec })
  return problems && renderPodProblems(problems)
}

/** Sets that ask for different domains, or of which some ask for none, are not kept together. */
function commonTopology(sets: readonly RequestSet[]): string | undefined {
  const [first, ...others] = sets.map(({ template }) => template.metadata?.annotations?.[topologyAnnotation])
  return first !== undefined && first !== '' && others.every((key) => key === first) ? first : undefined
}
