/** Controllers of played pods, reduced to what other components read. */
import { apiVersionOf, controllerOf, kinds, type KubeObject, type Pod, type ResourceType } from '@tenon/api'
import { type ApiServer, restoreObjects } from '@tenon/devcluster'
import { ownerObject } from './played-objects.ts'

/**
 * Without its controller a pod would be garbage-collected, and PodDisruptionBudgets with percentages need the
 * number of replicas.
 */
export class Owners {
  readonly #server: Pick<ApiServer, 'local' | 'store'>
  /** Number of pods by UID of the controller. */
  readonly #pods = new Map<string, number>()
  #types: ReadonlyMap<string, ResourceType> | undefined

  constructor(server: Pick<ApiServer, 'local' | 'store'>) {
    this.#server = server
  }

  add(pod: Pod): void {
    this.#count(pod, 1)
  }

  remove(pod: Pod): void {
    this.#count(pod, -1)
  }

  #count(pod: Pod, change: number): void {
    const owner = controllerOf(pod)
    const type = owner && this.#typeOf(owner.apiVersion, owner.kind)
    if (owner === undefined || type === undefined) return
    const replicas = (this.#pods.get(owner.uid) ?? 0) + change
    this.#pods.set(owner.uid, replicas)
    const { local } = this.#server
    const namespace = pod.metadata.namespace ?? 'default'
    if (local.get<KubeObject>(type, namespace, owner.name) === undefined) {
      const object = ownerObject(owner, { namespace, replicas, pod })
      restoreObjects(this.#server, [{ type, object }])
    } else if (this.#isCounted(namespace)) local.patch(type, namespace, owner.name, { spec: { replicas } })
    if (replicas > 0 || owner.kind !== 'Job') return
    // Every run of a CronJob has a Job; they would accumulate.
    this.#pods.delete(owner.uid)
    local.delete(type, namespace, owner.name, { propagationPolicy: 'Orphan' })
  }

  #isCounted(namespace: string): boolean {
    return this.#server.local.list(kinds.podDisruptionBudget, { namespace }).length > 0
  }

  #typeOf(apiVersion: string, kind: string): ResourceType | undefined {
    this.#types ??= new Map(
      this.#server.local.definitions().map((each) => [`${apiVersionOf(each)}/${each.kind}`, each]),
    )
    return this.#types.get(`${apiVersion}/${kind}`)
  }
}
