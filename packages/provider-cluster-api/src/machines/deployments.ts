/** The workers of all MachineDeployments (cluster-api.md 8). */
import { ownValue } from '@tenon/api'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import { bindingOf, isStaying } from './binding.ts'
import { DeploymentWorker } from './deployment-worker.ts'
import type { WorkerDependencies } from './deployment-writes.ts'
import type { FollowedMachines } from './followed-machines.ts'

/** One worker per MachineDeployment with requests. */
export class Deployments {
  readonly #deps: WorkerDependencies
  readonly #workers = new Map<string, DeploymentWorker>()

  constructor(deps: WorkerDependencies, followed: FollowedMachines) {
    this.#deps = deps
    followed.changes.add((machine) => {
      // Only free Machines can serve waiting claims. Others change often, and each look lists all Machines.
      if (!isStaying(machine, deps.hub.names) || bindingOf(machine, deps.hub.names).kind === 'bound') return
      const name = ownValue(machine.metadata.labels, deps.hub.names.deploymentName)
      if (name !== undefined) this.#workers.get(hubText({ ...hubKeyOf(machine), name }))?.changed()
    })
  }

  worker(key: HubKey): DeploymentWorker {
    const text = hubText(key)
    const worker = this.#workers.get(text) ?? new DeploymentWorker(key, this.#deps)
    this.#workers.set(text, worker)
    return worker
  }

  /** How many claims wait for a Machine of a MachineDeployment. */
  waiting(key: HubKey): number {
    return this.#workers.get(hubText(key))?.waiting ?? 0
  }

  /** Cancels the wait of a claim at every MachineDeployment. Afterwards nothing is bound to it any more. */
  async forget(claimUid: string): Promise<void> {
    await Promise.all(Array.from(this.#workers.values(), (worker) => worker.forget(claimUid)))
  }
}
