/** The pods that represent ProvisioningRequests (gangs.md 2.2). */
import {
  type Pod,
  type PodTemplate,
  type PodTemplateSpec,
  type ProvisioningRequest,
  requestPods,
  requestSets,
} from '@tenon/api'
import type { PodReader } from '@tenon/filters'
import { messageOf } from '@tenon/runtime'
import type { ClusterCache } from '../model.ts'
import { uidOf } from './known-requests.ts'

export type RequestRoom =
  /** The pods of each set, in order. */
  | { readonly kind: 'resolved'; readonly sets: readonly (readonly Pod[])[] }
  /** A template does not exist or is invalid. */
  | { readonly kind: 'failed'; readonly message: string }

interface Kept {
  readonly templates: readonly (PodTemplate | undefined)[]
  readonly claims: string
  readonly room: RequestRoom
}

export class RequestRooms {
  readonly #cache: Pick<ClusterCache, 'requests' | 'volumes'>
  readonly #reader: PodReader
  /** By UID: pods stay the same objects from loop to loop, so that caches by object work. */
  readonly #kept = new Map<string, Kept>()

  constructor(cache: Pick<ClusterCache, 'requests' | 'volumes'>, reader: PodReader) {
    this.#cache = cache
    this.#reader = reader
  }

  /** Drops all requests but these. */
  keepOnly(requests: readonly ProvisioningRequest[]): void {
    const uids = new Set(requests.map(uidOf))
    for (const uid of this.#kept.keys()) if (!uids.has(uid)) this.#kept.delete(uid)
  }

  of(request: ProvisioningRequest): RequestRoom {
    const { requests: objects } = this.#cache
    const { namespace = '' } = request.metadata
    const volumes = this.#cache.volumes()
    const hasClaim = (name: string) => volumes.claim(namespace, name) !== undefined
    const templateOf = (name: string) => objects?.template(namespace, name)
    const templates = request.spec.podSets.map(({ podTemplateRef }) => templateOf(podTemplateRef.name))
    const claims = templates.flatMap((each) => claimsOf(each).filter(hasClaim)).join()
    const before = this.#kept.get(uidOf(request))
    if (before?.claims === claims && templates.every((each, at) => each === before.templates[at]))
      return before.room
    const found = requestSets(request, templateOf, (template) => this.#problemOf(template))
    const room: RequestRoom =
      found.kind === 'failed' ? found : { kind: 'resolved', sets: requestPods(request, found.sets, hasClaim) }
    this.#kept.set(uidOf(request), { templates, claims, room })
    return room
  }

  #problemOf({ spec }: PodTemplateSpec): string | undefined {
    try {
      this.#reader.factsOf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: '' }, spec })
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }
}

function claimsOf(template: PodTemplate | undefined): readonly string[] {
  return (template?.template.spec.volumes ?? []).flatMap(
    ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [],
  )
}
