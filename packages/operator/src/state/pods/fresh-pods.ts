import { kinds, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { podFields } from '../kept-fields.ts'
import { withoutNulls } from '../readable.ts'

/**
 * The pods of a node by the API server's word. Whatever takes a node away asks this first: the cache may be minutes
 * old, or filled from a list that was wrong (reports-2.md 1, 2). One request, which an API server answers by index.
 * @throws KubeError.
 */
export async function podsOnNode(
  client: Pick<KubeClient, 'list'>,
  nodeName: string,
  signal?: AbortSignal,
): Promise<readonly Pod[]> {
  const pods = await client.list(kinds.pod, {
    fieldSelector: `spec.nodeName=${nodeName}`,
    fields: podFields,
    ...(signal && { signal }),
  })
  return pods.map(withoutNulls)
}
