/** The request to create an instance, with the user data by which it joins the cluster. */
import { labels as coreLabels, type NodeClaim } from '@tenon/api'
import type { Logger } from '@tenon/runtime'
import type { CreateInstanceRequest } from '../api/types.ts'
import type { CatalogueEntry } from '../catalogue/catalogue.ts'
import { launchError, launchReasons } from '../errors.ts'
import { instanceLabels, managedByValue } from '../identifiers.ts'
import { diskSizeGib, kubeletSettings } from '../nodeclass/settings.ts'
import type { TemplateResolver } from '../nodeclass/template.ts'
import type { ExoscaleNodeClass } from '../nodeclass/types.ts'
import type { BootstrapToken, BootstrapTokens } from './bootstrap-token.ts'
import type { FullGroups } from './full-groups.ts'
import { encodedUserData } from './user-data.ts'

/** The cluster as new nodes see it. */
interface JoinedCluster {
  /** UUID of the SKS cluster. */
  readonly id: string
  readonly domain: string
  /** URL of the API server. */
  readonly endpoint: string
  /** PEM. */
  readonly certificateAuthority: () => Promise<string>
}

/** What is decided before anything is created. */
export interface LaunchPlan {
  readonly claim: NodeClaim
  readonly nodeClass: ExoscaleNodeClass
  readonly name: string
  readonly entry: CatalogueEntry
}

/** A request that is ready to send. */
export interface PreparedRequest {
  /** Exists in the cluster. */
  readonly token: BootstrapToken
  /** @throws RangeError if the user data is too long or incomplete. */
  readonly request: () => CreateInstanceRequest
}

export interface BootRequestsDependencies {
  readonly groups: Pick<FullGroups, 'check'>
  readonly templates: Pick<TemplateResolver, 'resolve'>
  readonly tokens: Pick<BootstrapTokens, 'create' | 'delete'>
  readonly cluster: JoinedCluster
  readonly logger: Logger
}

/** Prepares requests for new instances. */
export class BootRequests {
  readonly #deps: BootRequestsDependencies

  constructor(deps: BootRequestsDependencies) {
    this.#deps = deps
  }

  /** Creates the token last, so that nothing has to be deleted if an earlier step fails. */
  async prepare(plan: LaunchPlan, signal: AbortSignal | undefined): Promise<PreparedRequest> {
    const { cluster, groups, templates, tokens } = this.#deps
    let template: string
    let authority: string
    try {
      await groups.check(plan.nodeClass, signal)
      template = await templates.resolve(plan.nodeClass.spec, signal)
      authority = await cluster.certificateAuthority()
    } catch (error) {
      throw launchError(error, launchReasons.instance)
    }
    const token = await tokens.create(plan.claim, signal).catch((error: unknown) => {
      throw launchError(error, launchReasons.token)
    })
    return { token, request: () => this.#request(plan, template, authority, token) }
  }

  /** Deletes the token of an instance that was not created. */
  async discard(token: BootstrapToken): Promise<void> {
    try {
      await this.#deps.tokens.delete(token.secretName)
    } catch (error) {
      this.#deps.logger.warn('unused bootstrap token could not be deleted', {
        secret: token.secretName,
        error,
      })
    }
  }

  #request(
    plan: LaunchPlan,
    template: string,
    authority: string,
    token: BootstrapToken,
  ): CreateInstanceRequest {
    const { claim, nodeClass, entry } = plan
    const { cluster } = this.#deps
    const securityGroups = nodeClass.status?.securityGroups ?? []
    const antiAffinityGroups = nodeClass.status?.antiAffinityGroups ?? []
    return {
      name: plan.name,
      'instance-type': { id: entry.id },
      template: { id: template },
      'disk-size': diskSizeGib(nodeClass.spec),
      'user-data': encodedUserData({
        apiServer: cluster.endpoint,
        bootstrapToken: token.token.reveal(),
        certificateAuthority: authority,
        clusterDomain: cluster.domain,
        kubelet: kubeletSettings(nodeClass.spec),
        taints: claim.spec.taints ?? [],
        labels: claim.metadata.labels ?? {},
      }),
      labels: wantedInstanceLabels(claim, cluster.id),
      ...(securityGroups.length > 0 && { 'security-groups': securityGroups.map((id) => ({ id })) }),
      ...(antiAffinityGroups.length > 0 && {
        'anti-affinity-groups': antiAffinityGroups.map((id) => ({ id })),
      }),
    }
  }
}

/** The labels of a claim's instance, by which it is found again. */
export function wantedInstanceLabels(claim: NodeClaim, clusterId: string): Readonly<Record<string, string>> {
  const pool = claim.metadata.labels?.[coreLabels.nodePool]
  return {
    [instanceLabels.managedBy]: managedByValue,
    [instanceLabels.clusterId]: clusterId,
    [instanceLabels.nodeClaim]: claim.metadata.name,
    ...(pool !== undefined && { [instanceLabels.nodePool]: pool }),
  }
}
