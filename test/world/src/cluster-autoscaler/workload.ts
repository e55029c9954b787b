/** The workload of a story: Deployments that are scaled, some of them with PodDisruptionBudgets. */
import type { KubeObject, ResourceType } from '@tenon/api'
import { integerBetween, type Random, unit } from '@tenon/runtime'
import { aDeployment, deploymentKind } from '../world.ts'
import type { AutoscalerWorld } from './autoscaler-world.ts'

/** Where the pods are to run. */
type WorkloadCluster = Pick<AutoscalerWorld, 'create'> & {
  readonly cluster: Pick<AutoscalerWorld['cluster'], 'server'>
}

const budgetKind: ResourceType = {
  group: 'policy',
  version: 'v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
}

export class Workload {
  readonly #world: WorkloadCluster
  readonly #dice: Random
  readonly #names: string[] = []
  /** The largest request, in tenths of a CPU and in hundreds of MiB. */
  readonly #largest: number

  constructor(world: WorkloadCluster, dice: Random, largest = 12) {
    this.#world = world
    this.#dice = dice
    this.#largest = largest
  }

  begin(): void {
    for (let index = 0; index < integerBetween(this.#dice, 2, 4); index++) this.#add(`app${index}`)
  }

  /** Scales one Deployment. */
  step(): void {
    const name = this.#names[integerBetween(this.#dice, 0, this.#names.length - 1)] ?? ''
    const replicas = unit(this.#dice) < 0.3 ? 0 : integerBetween(this.#dice, 1, 12)
    this.#world.cluster.server.local.patch(deploymentKind, 'default', name, { spec: { replicas } })
  }

  #add(name: string): void {
    const requests = {
      cpu: `${integerBetween(this.#dice, 2, this.#largest) * 100}m`,
      memory: `${integerBetween(this.#dice, 2, this.#largest) * 100}Mi`,
    }
    this.#names.push(name)
    this.#world.create(deploymentKind, aDeployment(name, integerBetween(this.#dice, 1, 8), requests))
    if (unit(this.#dice) < 0.6) this.#protect(name)
  }

  #protect(name: string): void {
    const budget: KubeObject & { readonly spec: object } = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: 'default' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } },
    }
    this.#world.create<KubeObject>(budgetKind, budget)
  }
}
