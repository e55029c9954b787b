/** Resolves the references of a node class: template, groups and networks. */
import type { Clock } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'
import { ResourceResolver } from './resources.ts'
import type { TemplateResolver } from './template.ts'
import type { ExoscaleNodeClass } from './types.ts'

/** The status lists that a step resolves. */
export type ResolvedLists = Partial<
  Record<'securityGroups' | 'antiAffinityGroups' | 'privateNetworks', readonly string[]>
>

/** Resolves one part of a node class; its condition shows whether that worked. */
export interface ResolutionStep {
  readonly condition: string
  readonly failureReason: string
  readonly run: (object: ExoscaleNodeClass, signal: AbortSignal) => Promise<ResolvedLists>
}

export interface ResolutionDependencies {
  readonly api: ExoscaleClient
  readonly templates: Pick<TemplateResolver, 'resolve'>
  readonly clock: Clock
}

export function resolutionSteps({
  api,
  templates,
  clock,
}: ResolutionDependencies): readonly ResolutionStep[] {
  const securityGroups = new ResourceResolver(
    {
      kind: 'security group',
      list: (signal) => api.listSecurityGroups(signal),
      get: (id, signal) => api.getSecurityGroup(id, signal),
    },
    clock,
  )
  const antiAffinityGroups = new ResourceResolver(
    {
      kind: 'anti-affinity group',
      list: (signal) => api.listAntiAffinityGroups(signal),
      get: (id, signal) => api.getAntiAffinityGroup(id, signal),
    },
    clock,
  )
  const privateNetworks = new ResourceResolver(
    {
      kind: 'private network',
      list: (signal) => api.listPrivateNetworks(signal),
      get: (id, signal) => api.getPrivateNetwork(id, signal),
    },
    clock,
  )
  return [
    {
      condition: 'TemplateResolved',
      failureReason: 'TemplateResolutionFailed',
      run: async ({ spec }, signal) => {
        await checkTemplate(api, await templates.resolve(spec, signal), signal)
        return {}
      },
    },
    {
      condition: 'SecurityGroupsResolved',
      failureReason: 'SecurityGroupResolutionFailed',
      run: async ({ spec }, signal) => ({
        securityGroups: await securityGroups.resolve(
          spec.securityGroups ?? [],
          spec.securityGroupSelectorTerms ?? [],
          signal,
        ),
      }),
    },
    {
      condition: 'AntiAffinityGroupsResolved',
      failureReason: 'AntiAffinityGroupResolutionFailed',
      run: async ({ spec }, signal) => ({
        antiAffinityGroups: await antiAffinityGroups.resolve(
          spec.antiAffinityGroups ?? [],
          spec.antiAffinityGroupSelectorTerms ?? [],
          signal,
        ),
      }),
    },
    {
      condition: 'PrivateNetworksResolved',
      failureReason: 'PrivateNetworkResolutionFailed',
      run: async ({ spec }, signal) => ({
        privateNetworks: await privateNetworks.resolve(
          spec.privateNetworks ?? [],
          spec.privateNetworkSelectorTerms ?? [],
          signal,
        ),
      }),
    },
  ]
}

async function checkTemplate(api: ExoscaleClient, id: string, signal: AbortSignal): Promise<void> {
  try {
    await api.getTemplate(id, signal)
  } catch (error) {
    if (!isApiError(error, 'not-found')) throw error
    throw new Error(`template ${id} does not exist in this zone or is not accessible`, { cause: error })
  }
}
