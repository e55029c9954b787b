/** Launches an instance for a NodeClaim, at most one per claim. */
import {
  conditionOf,
  formatResources,
  type InstanceType,
  labels as coreLabels,
  type NodeClaim,
  parseResources,
  type ResourceList,
  ownValue,
} from '@tenon/api'
import type { Cache, KubeClient } from '@tenon/kube'
import { ProviderError, type ProviderInstance } from '@tenon/provider'
import type { Clock, Logger } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { ExoscaleApiError, isApiError } from '../api/errors.ts'
import type { CreateInstanceRequest, ExoscaleInstance, Operation } from '../api/types.ts'
import type { Catalogue, CatalogueEntry } from '../catalogue/catalogue.ts'
import { instanceTypesOf, reservedResources } from '../catalogue/instance-types.ts'
import type { UnavailableOfferings } from '../catalogue/unavailable-offerings.ts'
import { isOutcomeUnknown, launchError, launchReasons } from '../errors.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { byAge, type OwnedInstance, ownedInstance } from '../fleet/owned-instance.ts'
import { exoscaleAnnotations, instanceLabels, managedByValue, parseProviderId } from '../identifiers.ts'
import { diskSizeGib, kubeletSettings, nodeClassHash } from '../nodeclass/settings.ts'
import type { TemplateResolver } from '../nodeclass/template.ts'
import { type ExoscaleNodeClass, exoscaleNodeClassKind } from '../nodeclass/types.ts'
import type { BootstrapToken, BootstrapTokens } from './bootstrap-token.ts'
import { impossibleRequirement, suitableTypes, withOffers } from './choice.ts'
import { ensureEarlyNode } from './early-node.ts'
import { attachPrivateNetworks } from './private-networks.ts'
import { Refusals } from './refusals.ts'
import { encodedUserData } from './user-data.ts'

const groupCapacity = 8
const maxNameLength = 63
/** How long an instance whose creation was not confirmed may take to show in lists. */
const settleMs = 30_000
const settlePollMs = 3000

export interface LauncherDependencies {
  readonly api: ExoscaleClient
  readonly kube: KubeClient
  readonly nodeClasses: Cache<ExoscaleNodeClass>
  readonly catalogue: Catalogue
  readonly unavailable: UnavailableOfferings
  readonly templates: TemplateResolver
  readonly tokens: BootstrapTokens
  readonly fleet: Fleet
  readonly clock: Clock
  readonly logger: Logger
  readonly zone: string
  readonly clusterId: string
  readonly instancePrefix: string
  readonly clusterDomain: string
  readonly clusterEndpoint: string
  readonly certificateAuthority: () => Promise<string>
}

/** What is settled before anything is made. */
interface Plan {
  readonly claim: NodeClaim
  readonly nodeClass: ExoscaleNodeClass
  readonly name: string
  readonly entry: CatalogueEntry
}

/** Launches instances. Rejects with {@link ProviderError} only. */
export class Launcher {
  readonly #deps: LauncherDependencies
  readonly #refusals: Refusals

  constructor(deps: LauncherDependencies) {
    this.#deps = deps
    this.#refusals = new Refusals(deps)
  }

  /** @param offered the types as decisions see them; prices and availability are taken from there. */
  async launch(
    claim: NodeClaim,
    signal?: AbortSignal,
    offered?: readonly InstanceType[],
  ): Promise<ProviderInstance> {
    const nodeClass = await this.#readyNodeClass(claim, signal)
    const name = this.#nameOf(claim)
    const adopted = await this.#instanceOf(claim, signal).catch((error: unknown) => {
      throw launchError(error, launchReasons.instance)
    })
    const instance =
      adopted === undefined
        ? await this.#make(await this.#plan(claim, nodeClass, name, offered), signal)
        : await this.#settled(adopted, signal)
    await this.#attachNetworks(nodeClass, instance, signal)
    return this.#introduced(name, nodeClass, instance)
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
      throw new ProviderError('insufficientCapacity', `ExoscaleNodeClass ${name} does not exist`)
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
      { reason: launchReasons.instance },
    )
  }

  async #plan(
    claim: NodeClaim,
    nodeClass: ExoscaleNodeClass,
    name: string,
    offered: readonly InstanceType[] | undefined,
  ): Promise<Plan> {
    const impossible = impossibleRequirement(claim)
    if (impossible !== undefined) {
      throw new ProviderError('create', `NodeClaim ${claim.metadata.name}: ${impossible}`, {
        reason: launchReasons.instance,
      })
    }
    const { catalogue, unavailable, zone } = this.#deps
    const view = await catalogue.view().catch((error: unknown) => {
      throw launchError(error, launchReasons.instance)
    })
    const { kubeReserved, systemReserved } = kubeletSettings(nodeClass.spec)
    const types = instanceTypesOf(view.entries, {
      zone,
      diskSizeGib: diskSizeGib(nodeClass.spec),
      kubeReserved,
      systemReserved,
      unavailability: (entry) => unavailable.why(entry.name, entry.family),
    })
    return { claim, nodeClass, name, entry: chosenEntry(claim, withOffers(types, offered), view.byName) }
  }

  /** The oldest living instance of a claim; younger ones are accidents and are deleted. */
  async #instanceOf(claim: NodeClaim, signal: AbortSignal | undefined): Promise<OwnedInstance | undefined> {
    const { fleet, logger } = this.#deps
    const instances = (await fleet.owned(signal)).filter(
      (owned) => owned.nodeClaimName === claim.metadata.name && !owned.isDeleting,
    )
    const [keep, ...surplus] = instances.filter(({ instance }) => instance.state !== 'error').sort(byAge)
    for (const owned of [...surplus, ...instances.filter(({ instance }) => instance.state === 'error')]) {
      logger.warn('deleting a surplus or failed instance of a claim', { instance: owned.id })
      await fleet.requestDeletion(owned.id, signal)
    }
    return keep
  }

  async #make(plan: Plan, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    const { api, tokens } = this.#deps
    let template: string
    let authority: string
    try {
      await this.#checkGroups(plan.nodeClass, signal)
      template = await this.#deps.templates.resolve(plan.nodeClass.spec, signal)
      authority = await this.#deps.certificateAuthority()
    } catch (error) {
      throw launchError(error, launchReasons.instance)
    }
    const token = await tokens.create(plan.claim, signal).catch((error: unknown) => {
      throw launchError(error, launchReasons.token)
    })
    let operation: Operation
    try {
      operation = await api.createInstance(this.#request(plan, template, authority, token), signal)
    } catch (error) {
      if (!isOutcomeUnknown(error) && signal?.aborted !== true)
        return this.#refuse(error, plan, token, signal)
      const found = await this.#confirmed(plan.claim, signal)
      if (found !== undefined) return this.#settled(found, signal)
      // Without any answer the instance may still turn up, and needs its token then.
      if (error instanceof ExoscaleApiError) await this.#discard(token)
      throw launchError(error, launchReasons.instance)
    }
    return this.#finished(operation, plan, token, signal)
  }

  /** Waits for the creation to end; what it left behind when it failed is deleted. */
  async #finished(
    operation: Operation,
    plan: Plan,
    token: BootstrapToken,
    signal: AbortSignal | undefined,
  ): Promise<ExoscaleInstance> {
    const { api, logger } = this.#deps
    let id = operation.reference?.id
    try {
      const ended = await api.waitForOperation(operation, { signal })
      id ??= ended.reference?.id
    } catch (error) {
      if (signal?.aborted === true || isOutcomeUnknown(error))
        throw launchError(error, launchReasons.instance)
      if (id !== undefined) {
        await this.#deleteFailed(id, plan.claim, signal).catch((cause: unknown) => {
          logger.warn('failed instance could not be deleted', { instance: id, error: cause })
        })
      }
      return this.#refuse(error, plan, token, signal)
    }
    const made = id === undefined ? undefined : await this.#instance(id, signal)
    if (made !== undefined && this.#isOf(plan.claim, made)) return made
    const found = await this.#confirmed(plan.claim, signal)
    if (found !== undefined) return this.#settled(found, signal)
    throw launchError(
      new Error(`operation ${operation.id} names no instance of this NodeClaim`),
      launchReasons.instance,
    )
  }

  #instance(id: string, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    return this.#deps.api.getInstance(id, signal).catch((error: unknown) => {
      throw launchError(error, launchReasons.instance)
    })
  }

  /** Whether the instance is the claim's: which one a launch made, only labels prove. */
  #isOf(claim: NodeClaim, instance: ExoscaleInstance): boolean {
    return ownedInstance(instance, this.#deps.clusterId)?.nodeClaimName === claim.metadata.name
  }

  /** What an operation names is not deleted before it is seen to be the claim's. */
  async #deleteFailed(id: string, claim: NodeClaim, signal: AbortSignal | undefined): Promise<void> {
    const { api, fleet, logger } = this.#deps
    if (this.#isOf(claim, await api.getInstance(id, signal))) await fleet.requestDeletion(id, signal)
    else logger.warn('a failed launch references an instance of another owner', { instance: id })
  }

  /** Nothing was made: the token goes too. */
  async #refuse(
    error: unknown,
    plan: Plan,
    token: BootstrapToken,
    signal: AbortSignal | undefined,
  ): Promise<never> {
    await this.#discard(token)
    throw await this.#refusals.explain(error, plan.entry, signal)
  }

  async #discard(token: BootstrapToken): Promise<void> {
    try {
      await this.#deps.tokens.delete(token.secretName)
    } catch (error) {
      this.#deps.logger.warn('unused bootstrap token could not be deleted', {
        secret: token.secretName,
        error,
      })
    }
  }

  /** Looks for an instance whose creation was not confirmed, until lists surely show it. */
  async #confirmed(claim: NodeClaim, signal: AbortSignal | undefined): Promise<OwnedInstance | undefined> {
    const { clock, logger } = this.#deps
    for (let waitedMs = 0; ; waitedMs += settlePollMs) {
      signal?.throwIfAborted()
      try {
        const found = await this.#instanceOf(claim, signal)
        if (found !== undefined) return found
      } catch (error) {
        logger.warn('instances could not be listed after an unconfirmed creation', { error })
      }
      if (waitedMs >= settleMs) return undefined
      await clock.sleep(settlePollMs, signal)
    }
  }

  /** An instance found by its labels, read until it is past `starting`, for at most ten minutes. */
  async #settled(owned: OwnedInstance, signal: AbortSignal | undefined): Promise<ExoscaleInstance> {
    const { api, clock } = this.#deps
    const deadlineMs = clock.monotonic() + 10 * 60_000
    for (;;) {
      let instance: ExoscaleInstance
      try {
        instance = await api.getInstance(owned.id, signal)
      } catch (error) {
        throw launchError(error, launchReasons.instance)
      }
      if (instance.state === 'error') {
        throw new ProviderError('create', `instance ${owned.id} is in state error`, {
          reason: launchReasons.instance,
        })
      }
      if (instance.state !== 'starting' || clock.monotonic() > deadlineMs) return instance
      await clock.sleep(settlePollMs, signal)
    }
  }

  async #checkGroups(nodeClass: ExoscaleNodeClass, signal: AbortSignal | undefined): Promise<void> {
    for (const id of nodeClass.status?.antiAffinityGroups ?? []) {
      const group = await this.#deps.api.getAntiAffinityGroup(id, signal)
      const members = group.instances?.length ?? 0
      if (members < groupCapacity) continue
      throw new ProviderError(
        'insufficientCapacity',
        `anti-affinity group ${id} (${group.name ?? 'unnamed'}) is full: ${members}/${groupCapacity} instances; give the NodePool a node class with another group`,
      )
    }
  }

  #request(plan: Plan, template: string, authority: string, token: BootstrapToken): CreateInstanceRequest {
    const { claim, nodeClass, entry } = plan
    const { clusterId, clusterDomain, clusterEndpoint } = this.#deps
    const securityGroups = nodeClass.status?.securityGroups ?? []
    const antiAffinityGroups = nodeClass.status?.antiAffinityGroups ?? []
    return {
      name: plan.name,
      'instance-type': { id: entry.id },
      template: { id: template },
      'disk-size': diskSizeGib(nodeClass.spec),
      'user-data': encodedUserData({
        apiServer: clusterEndpoint,
        bootstrapToken: token.token.reveal(),
        certificateAuthority: authority,
        clusterDomain,
        kubelet: kubeletSettings(nodeClass.spec),
        taints: claim.spec.taints ?? [],
        labels: claim.metadata.labels ?? {},
      }),
      labels: wantedInstanceLabels(claim, clusterId),
      ...(securityGroups.length > 0 && { 'security-groups': securityGroups.map((id) => ({ id })) }),
      ...(antiAffinityGroups.length > 0 && {
        'anti-affinity-groups': antiAffinityGroups.map((id) => ({ id })),
      }),
    }
  }

  async #attachNetworks(
    nodeClass: ExoscaleNodeClass,
    instance: ExoscaleInstance,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { api, fleet, logger } = this.#deps
    try {
      await attachPrivateNetworks(api, nodeClass.status?.privateNetworks ?? [], instance, signal)
    } catch (error) {
      // Where the networks may be attached all the same, the next attempt continues with this instance.
      if (signal?.aborted !== true && !isOutcomeUnknown(error)) {
        await fleet.requestDeletion(instance.id).catch((cause: unknown) => {
          logger.warn('instance without its networks could not be deleted', {
            instance: instance.id,
            error: cause,
          })
        })
      }
      throw launchError(error, launchReasons.instance)
    }
  }

  /** Makes the instance known to the cluster and tells what it is. */
  async #introduced(
    name: string,
    nodeClass: ExoscaleNodeClass,
    instance: ExoscaleInstance,
  ): Promise<ProviderInstance> {
    const owned = await this.#deps.fleet.describe(instance)
    const described = { ...owned, allocatable: allocatableOf(owned.capacity, nodeClass) }
    try {
      await ensureEarlyNode({ ...this.#deps, isAlive: (id) => this.#isAlive(id) }, name, instance, described)
    } catch (error) {
      throw launchError(error, launchReasons.node)
    }
    const { imageID } = described
    return {
      ...described,
      annotations: {
        [exoscaleAnnotations.nodeClassHash]: nodeClassHash(nodeClass.spec),
        ...(imageID !== undefined && { [exoscaleAnnotations.resolvedTemplate]: imageID }),
      },
    }
  }

  async #isAlive(providerID: string): Promise<boolean> {
    const parsed = parseProviderId(providerID)
    if (parsed.kind !== 'instance') return true
    try {
      await this.#deps.api.getInstance(parsed.instanceId)
      return true
    } catch (error) {
      if (isApiError(error, 'not-found')) return false
      throw error
    }
  }
}

/** The labels every instance of a claim wears, and by which it is found again. */
export function wantedInstanceLabels(claim: NodeClaim, clusterId: string): Readonly<Record<string, string>> {
  const pool = claim.metadata.labels?.[coreLabels.nodePool]
  return {
    [instanceLabels.managedBy]: managedByValue,
    [instanceLabels.clusterId]: clusterId,
    [instanceLabels.nodeClaim]: claim.metadata.name,
    ...(pool !== undefined && { [instanceLabels.nodePool]: pool }),
  }
}

/** What is left for pods; the kubelet will report the same once it is up. */
function allocatableOf(capacity: ResourceList, nodeClass: ExoscaleNodeClass): ResourceList {
  const { kubeReserved, systemReserved } = kubeletSettings(nodeClass.spec)
  const reserved = [reservedResources(kubeReserved), reservedResources(systemReserved)]
  const left = Object.entries(parseResources(capacity)).map(([name, amount]): [string, number] => [
    name,
    Math.max(
      0,
      reserved.reduce((rest, part) => rest - (ownValue(part, name) ?? 0), amount),
    ),
  ])
  return formatResources(Object.fromEntries(left))
}

function chosenEntry(
  claim: NodeClaim,
  types: readonly InstanceType[],
  byName: ReadonlyMap<string, CatalogueEntry>,
): CatalogueEntry {
  const suitable = suitableTypes(claim, types)
  const available = suitable.find((type) => type.offerings.some((offering) => offering.available))
  const entry = available === undefined ? undefined : byName.get(available.name)
  if (entry !== undefined) return entry
  if (suitable.length > 0) {
    const names = suitable.map((type) => type.name).join(', ')
    throw new ProviderError('insufficientCapacity', `none of ${names} is available now`)
  }
  throw new ProviderError(
    'create',
    `NodeClaim ${claim.metadata.name}: no instance type of this zone satisfies its requirements, requests and disk size`,
    { reason: launchReasons.instance },
  )
}
