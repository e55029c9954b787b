import type { KubeObject, ResourceType } from '@tenon/api'
import { isKubeError, type KubeClient, type PatchOptions } from '@tenon/kube'

/**
 * Patches the status of an object unless it has changed since it was read: lists of conditions are replaced as a whole,
 * and other controllers set conditions, too.
 */
export async function patchStatus<T extends KubeObject>(
  client: Pick<KubeClient, 'patch'>,
  type: ResourceType<T>,
  { metadata: { name, resourceVersion = '' } }: T,
  status: object,
  options: Pick<PatchOptions, 'isAnswerUnread'> = {},
): Promise<'written' | 'conflict' | 'gone'> {
  try {
    await client.patch(type, { name }, { status }, { ...options, subresource: 'status', resourceVersion })
    return 'written'
  } catch (error) {
    if (isKubeError(error, 'conflict')) return 'conflict'
    if (isKubeError(error, 'notFound')) return 'gone'
    throw error
  }
}
