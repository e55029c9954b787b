import type { ExoscaleClient } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'
import type { ExoscaleInstance } from '../api/types.ts'

/** Attaches the networks one by one; skips those that are attached already. */
export async function attachPrivateNetworks(
  api: Pick<ExoscaleClient, 'attachInstanceToPrivateNetwork' | 'getInstance' | 'waitForOperation'>,
  networkIds: readonly string[],
  instance: ExoscaleInstance,
  signal?: AbortSignal,
): Promise<void> {
  const attached = new Set((instance['private-networks'] ?? []).map((network) => network.id))
  for (const networkId of networkIds) {
    if (attached.has(networkId)) continue
    try {
      const operation = await api.attachInstanceToPrivateNetwork(networkId, instance.id, signal)
      await api.waitForOperation(operation, { signal })
    } catch (error) {
      if (!(await isAttached(api, networkId, instance.id, error, signal))) throw error
    }
  }
}

/** If a first call took effect but its response was lost, a repeated one is refused. */
async function isAttached(
  api: Pick<ExoscaleClient, 'getInstance'>,
  networkId: string,
  instanceId: string,
  error: unknown,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (!isApiError(error, 'conflict', 'bad-request', 'unprocessable')) return false
  const { 'private-networks': networks = [] } = await api.getInstance(instanceId, signal)
  return networks.some((network) => network.id === networkId)
}
