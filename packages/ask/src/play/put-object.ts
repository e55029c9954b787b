/** Changes of objects other than pods. */
import { apiVersionOf, type KubeObject, type ResourceType } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'

/**
 * Creates or replaces an object; its status is kept.
 * @throws Error if the cluster does not serve the kind, ApiError if the object is invalid.
 */
export function putObject(api: LocalApi, object: KubeObject): void {
  const type = typeOf(api, object.apiVersion, object.kind)
  const { name, namespace, labels = {}, annotations } = object.metadata
  const present = api.get<KubeObject>(type, namespace, name)
  if (present === undefined) {
    const { uid: _uid, generation: _generation, ...metadata } = object.metadata
    api.create(type, { ...object, metadata })
    return
  }
  const { metadata, ...rest } = present
  api.update(type, {
    ...rest,
    ...object,
    // Keeps what controllers have written.
    metadata: { ...metadata, labels, annotations: { ...metadata.annotations, ...annotations } },
  })
}

export function removeObject(
  api: LocalApi,
  {
    apiVersion,
    objectKind,
    namespace,
    name,
  }: {
    readonly apiVersion: string
    readonly objectKind: string
    readonly namespace?: string
    readonly name: string
  },
): void {
  const type = typeOf(api, apiVersion, objectKind)
  if (api.get<KubeObject>(type, namespace, name) !== undefined) api.delete(type, namespace, name)
}

function typeOf(api: LocalApi, apiVersion: string, kind: string): ResourceType {
  const type = api.definitions().find((each) => each.kind === kind && apiVersionOf(each) === apiVersion)
  if (type === undefined) throw new Error(`the simulated cluster does not serve ${kind} of ${apiVersion}`)
  return type
}
