/** What refuses actions on a cluster: missing rights, and PodDisruptionBudgets. */
import { readFile, writeFile } from 'node:fs/promises'
import { type KubeObject, kinds, type Pod } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { aPod } from './snapshot.test-support.ts'
import type { ServedApi } from './served-api.test-support.ts'

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false }
const apiVersion = `${rbac.group}/${rbac.version}`

const everything = { apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }

/**
 * A kubeconfig for somebody who may read and change nothing.
 * @param rule what may be read; default: everything.
 * @returns its path.
 */
export async function readersKubeconfig(
  { kubeconfig, local }: ServedApi,
  rule: typeof everything = everything,
): Promise<string> {
  const role = { apiVersion, kind: 'ClusterRole', metadata: { name: 'reader' }, rules: [rule] }
  const binding = {
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'reader' },
    roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name: 'reader' },
    subjects: [{ apiGroup: rbac.group, kind: 'User', name: 'reader' }],
  }
  local.create<KubeObject>({ ...rbac, kind: role.kind, plural: 'clusterroles' }, role)
  local.create<KubeObject>({ ...rbac, kind: binding.kind, plural: 'clusterrolebindings' }, binding)
  const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as { users: { user: object }[] }
  config.users = config.users.map((each) => ({ ...each, user: { ...each.user, as: 'reader' } }))
  const path = `${kubeconfig}-reader`
  await writeFile(path, JSON.stringify(config), { mode: 0o600 })
  return path
}

/** A running pod that its ReplicaSet would put back. */
export function ownedPod(name: string, node: string): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'web', controller: true }
  const pod = aPod(name, node, { ownerReferences: [owner] })
  return { ...pod, status: { ...pod.status, conditions: [{ type: 'Ready', status: 'True' }] } }
}

/** A PodDisruptionBudget that lets no pod of the application `web` go. */
export function holdPods(local: LocalApi): void {
  const type = kinds.podDisruptionBudget
  const metadata = { name: 'web', namespace: 'shop' }
  local.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  local.create(type, {
    apiVersion: 'policy/v1',
    kind: type.kind,
    metadata,
    spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
  })
  const status = {
    disruptionsAllowed: 0,
    currentHealthy: 2,
    desiredHealthy: 2,
    expectedPods: 2,
    observedGeneration: 1,
  }
  local.patch(type, metadata.namespace, metadata.name, { status }, 'status')
}

/** Whatever is evicted or deleted ends at once, as there is no kubelet and no controller. */
export function endPodsAtOnce(local: LocalApi): () => void {
  return local.subscribe(kinds.pod, {
    updated: ({ metadata: { deletionTimestamp, name, namespace } }) => {
      if (deletionTimestamp === undefined) return
      queueMicrotask(() => local.delete(kinds.pod, namespace, name, { gracePeriodSeconds: 0 }))
    },
  })
}
