/**
 * Writes nodes and evictions, with the permissions of Cluster Autoscaler's manifests (cluster-autoscaler.md 1.5).
 */
import {
  autoscalingKinds,
  type CapacityQuota,
  kinds,
  type Node,
  type Pod,
  type ProvisioningRequest,
} from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import type { ClusterWriter } from '../model.ts'

/** After a conflict: the pause before a retry, and the time limit (cluster-autoscaler.md 6.6). */
const retryPauseMs = 750
const retryLimitMs = 5000

export interface ClusterWriterDependencies {
  readonly client: Pick<KubeClient, 'get' | 'update' | 'evict'>
  /** Has a short timeout, as the loop waits for statuses. */
  readonly requestClient: Pick<KubeClient, 'patch' | 'update' | 'delete'>
  readonly clock: Clock
}

/** Reads without a cache what it writes, and updates whole nodes, as there is no permission to patch them. */
export function createClusterWriter({
  client,
  requestClient,
  clock,
}: ClusterWriterDependencies): ClusterWriter {
  return {
    updateNode: async (name, change, signal) => {
      const lastTryMs = clock.monotonic() + retryLimitMs - retryPauseMs
      for (;;) {
        const found = await client.get(kinds.node, { name }, { signal })
        const wanted = found && change(found)
        if (wanted === undefined) return found
        try {
          return await client.update(kinds.node, wanted, { signal })
        } catch (error) {
          if (isKubeError(error, 'notFound')) return undefined
          if (!isKubeError(error, 'conflict') || clock.monotonic() > lastTryMs) throw error
        }
        await clock.sleep(retryPauseMs, signal)
      }
    },
    evict: async (pod, graceSeconds, signal) => {
      const { name, namespace = '', uid = '' } = pod.metadata
      const key = { name, namespace }
      try {
        await client.evict(key, uid, { gracePeriodSeconds: graceSeconds, signal })
      } catch (error) {
        if (isKubeError(error, 'notFound')) return
        // Another pod of this name must not be evicted.
        if (
          isKubeError(error, 'conflict') &&
          (await client.get(kinds.pod, key, { signal }))?.metadata.uid !== uid
        )
          return
        throw error
      }
    },
    nominate: async (pod, nominatedNodeName, signal) => {
      const changed = { ...pod, status: { ...pod.status, nominatedNodeName } }
      await client.update(kinds.pod, changed, { subresource: 'status', lane: 'urgent', signal })
    },
    writeRequestConditions: async ({ metadata, status }, signal) => {
      const { name, namespace = '', resourceVersion = '' } = metadata
      try {
        return await requestClient.patch<ProvisioningRequest>(
          autoscalingKinds.provisioningRequest,
          { namespace, name },
          { status: { conditions: status?.conditions ?? [] } },
          { subresource: 'status', resourceVersion, signal },
        )
      } catch (error) {
        if (isKubeError(error, 'conflict', 'notFound')) return undefined
        throw error
      }
    },
    writeQuotaStatus: async (quota, signal) => {
      try {
        await requestClient.update<CapacityQuota>(autoscalingKinds.capacityQuota, quota, {
          subresource: 'status',
          signal,
        })
      } catch (error) {
        if (!isKubeError(error, 'conflict', 'notFound')) throw error
      }
    },
    deleteRequest: async ({ metadata }, signal) => {
      const { name, namespace = '', resourceVersion = '', uid = '' } = metadata
      const options = { preconditionUid: uid, preconditionResourceVersion: resourceVersion, signal }
      try {
        await requestClient.delete(autoscalingKinds.provisioningRequest, { namespace, name }, options)
      } catch (error) {
        if (!isKubeError(error, 'conflict', 'notFound')) throw error
      }
    },
  }
}

/** A writer that reads, but only logs what it would write. */
export function createDryRunWriter(client: Pick<KubeClient, 'get'>, logger: Logger): ClusterWriter {
  return {
    updateNode: async (name, change, signal): Promise<Node | undefined> => {
      const found = await client.get(kinds.node, { name }, { signal })
      const wanted = found && change(found)
      if (wanted !== undefined) {
        const { taints = [], unschedulable = false } = wanted.spec ?? {}
        logger.info('dry run: would update node', { node: name, taints, unschedulable })
      }
      return found
    },
    evict: async ({ metadata: { name, namespace } }: Pod, graceSeconds) => {
      logger.info('dry run: would evict pod', { pod: `${namespace}/${name}`, graceSeconds })
      await Promise.resolve()
    },
    nominate: async ({ metadata: { name, namespace } }, node) => {
      logger.info('dry run: would nominate pod', { pod: `${namespace}/${name}`, node })
      await Promise.resolve()
    },
    writeRequestConditions: async (request) => {
      const conditions = (request.status?.conditions ?? []).map(({ type, status, reason }) =>
        [type, status, reason].join(' '),
      )
      const { name, namespace } = request.metadata
      logger.info('dry run: would write ProvisioningRequest', { request: `${namespace}/${name}`, conditions })
      return await Promise.resolve(request)
    },
    writeQuotaStatus: async ({ metadata: { name }, status }) => {
      logger.debug('dry run: would write status of CapacityQuota', { quota: name, used: status?.used })
      await Promise.resolve()
    },
    deleteRequest: async ({ metadata: { name, namespace } }) => {
      logger.info('dry run: would delete ProvisioningRequest', { request: `${namespace}/${name}` })
      await Promise.resolve()
    },
  }
}
