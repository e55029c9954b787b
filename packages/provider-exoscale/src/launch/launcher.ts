/** Launches an instance for a NodeClaim, at most one per claim. */
import { conditionOf, type InstanceType, type NodeClaim } from '@tenon/api'
import type { Cache, KubeClient } from '@tenon/kube'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import { launchError, launchReasons } from '../errors.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from '../nodeclass/types.ts'
import type { InstanceCreation } from './instance-creation.ts'
import type { Introduction } from './introduction.ts'
import type { TypeChoice } from './type-choice.ts'

/** Of instance names, which are hostnames and label values. */
export const maxNameLength = 63

export interface LauncherDependencies {
  readonly kube: Pick<KubeClient, 'get'>
  readonly nodeClasses: Pick<Cache<ExoscaleNodeClass>, 'get'>
  readonly types: TypeChoice
  readonly creation: InstanceCreation
  readonly introduction: Introduction
  /** Prefix of instance names, before the name of the claim. */
  readonly instancePrefix: string
}

/** Launches instances. Only rejects with {@link ProviderError}. */
export class Launcher {
  readonly #deps: LauncherDependencies

  constructor(deps: LauncherDependencies) {
    this.#deps = deps
  }

  /** @param offered the types as decisions see them, with prices and availability. */
  async launch(
    claim: NodeClaim,
    signal?: AbortSignal,
    offered?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    const { types, creation, introduction } = this.#deps
    const nodeClass = await this.#readyNodeClass(claim, signal)
    const name = this.#nameOf(claim)
    const adopted = await creation.find(claim, signal).catch((error: unknown) => {
      throw launchError(error, launchReasons.instance)
    })
    const create = async () => {
      const made = await creation.made({ claim, nodeClass, name }, signal)
      if (made !== undefined) return made
      const entry = await types.choose(claim, nodeClass, offered)
      return await creation.create({ claim, nodeClass, name, entry }, signal)
    }
    const instance = adopted === undefined ? await create() : await creation.settled(adopted, signal)
    await introduction.attachNetworks(nodeClass, instance, signal)
    return introduction.introduce(name, nodeClass, instance)
  }

  /** The id of the instance that was created for a claim, if known. */
  madeFor(claim: NodeClaim): string | undefined {
    return this.#deps.creation.madeFor(claim)
  }

  async #readyNodeClass(claim: NodeClaim, signal: AbortSignal | undefined): Promise<ExoscaleNodeClass> {
    const { name } = claim.spec.nodeClassRef
    const options = signal === undefined ? {} : { signal }
    const nodeClass =
      this.#deps.nodeClasses.get({ name }) ??
      (await this.#deps.kube.get(exoscaleNodeClassKind, { name }, options).catch((error: unknown) => {
        throw new ProviderError('other', `ExoscaleNodeClass ${name} could not be read`, { cause: error })
      }))
    if (nodeClass === undefined) {
      throw new ProviderError('insufficientCapacity', `ExoscaleNodeClass ${name} does not exist`, {
        blames: { what: 'nodeClass' },
      })
    }
    const ready = conditionOf(nodeClass, 'Ready')
    if (ready?.status === 'False') {
      throw new ProviderError('nodeClassNotReady', `ExoscaleNodeClass ${name}: ${ready.message}`)
    }
    if (ready?.status !== 'True') {
      throw new ProviderError('other', `ExoscaleNodeClass ${name} has not been checked yet`)
    }
    return nodeClass
  }

  #nameOf(claim: NodeClaim): string {
    const name = `${this.#deps.instancePrefix}${claim.metadata.name}`
    if (name.length <= maxNameLength) return name
    throw new ProviderError(
      'create',
      `instance name ${name} is longer than ${maxNameLength} characters; shorten EXOSCALE_COMPUTE_INSTANCE_PREFIX or the NodePool's name`,
      { reason: launchReasons.instance, blames: { what: 'nodePool' } },
    )
  }
}
