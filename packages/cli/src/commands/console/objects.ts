/** Objects of a running cluster, for their pages, with the rights of the user (page.md 2). */
import { apiVersionOf, type ResourceType } from '@tenon/api'
import type { ObjectReader, ObjectRef } from '@tenon/console'
import { isKubeError } from '@tenon/kube'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import { askedKinds, cronJobKind, workloadKinds } from '../../kubectl/kinds.ts'
import { eventsOf } from '../../source/events.ts'

const pageTypes: ReadonlyMap<string, ResourceType> = new Map(
  [...askedKinds, ...workloadKinds, cronJobKind].map(({ type }) => [type.kind, type]),
)

/** What an API server accepts as a part of a path; anything else could name another path. */
const objectName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const groupName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const namespaceName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

export function clusterObjects({ client }: Pick<ClusterConnection, 'client'>): ObjectReader {
  const classTypes = new Map<string, ResourceType>()

  /** @returns undefined if the kind is not served, or has no page. */
  const typeOf = async (
    { group, kind }: ObjectRef,
    signal: AbortSignal,
  ): Promise<ResourceType | undefined> => {
    if (group === undefined) return pageTypes.get(kind)
    const key = `${group}/${kind}`
    const known = classTypes.get(key)
    if (known !== undefined) return known
    for (const version of await client.servedVersions(group, { signal })) {
      const served = (await client.servedKinds(group, version, { signal })).find((each) => each.kind === kind)
      if (served === undefined) continue
      const type: ResourceType = { group, version, kind, plural: served.plural, namespaced: false }
      classTypes.set(key, type)
      return type
    }
    return undefined
  }

  return {
    read: async (ref, signal) => {
      if (!isReadable(ref)) return { kind: 'gone' }
      try {
        const type = await typeOf(ref, signal)
        if (type === undefined)
          return {
            kind: 'unread',
            why: `objects of kind ${ref.kind} are not read: the cluster does not serve it, or Tenon does not know it`,
          }
        const { name, namespace = 'default' } = ref
        const object = await client.get(type, { name, ...(type.namespaced && { namespace }) }, { signal })
        if (object === undefined) return { kind: 'gone' }
        return { kind: 'read', object: { ...object, apiVersion: apiVersionOf(type), kind: type.kind } }
      } catch (error) {
        if (!isKubeError(error, 'forbidden')) throw error
        return { kind: 'unread', why: `the right is missing: ${error.serverMessage ?? error.message}` }
      }
    },
    events: async (ref, uid, signal) => {
      if (!isReadable(ref)) return []
      try {
        return await eventsOf({ client }, ref, uid, signal)
      } catch (error) {
        if (!isKubeError(error)) throw error
        signal.throwIfAborted()
        return { absent: `events cannot be listed: ${error.serverMessage ?? error.message}` }
      }
    },
  }
}

function isReadable({ group, kind, name, namespace }: ObjectRef): boolean {
  return (
    objectName.test(name) &&
    /^[A-Za-z0-9]{1,63}$/.test(kind) &&
    (group === undefined || groupName.test(group)) &&
    (namespace === undefined || namespaceName.test(namespace))
  )
}
