/** Whether Machines match their MachineDeployment (cluster-api.md 18). */
import { type Node, ownValue } from '@tenon/api'
import { templateHash } from '../deployments/template.ts'
import type { HubParts } from '../hub-parts.ts'
import type { FullMachine } from '../kinds.ts'

/** What the last pass found about a Machine. */
export interface Revision {
  /** Whether it matches the MachineDeployment's template. */
  readonly isCurrent: boolean
  /** Also requires the kubelet version of the template; never true if the template has none. */
  readonly isUpToDate: boolean
}

export function revisionOf(
  { api, kinds, names }: HubParts,
  { metadata }: FullMachine,
  node: Node | undefined,
): Revision {
  const name = ownValue(metadata.labels, names.deploymentName)
  const deployment = name === undefined ? undefined : api.get(kinds.deployment, metadata.namespace, name)
  // A Machine without a MachineDeployment counts as up to date.
  if (deployment === undefined) return { isCurrent: true, isUpToDate: true }
  const isCurrent = ownValue(metadata.labels, 'machine-template-hash') === templateHash(deployment)
  const version = deployment.spec?.template?.spec?.version
  const found = node?.status?.nodeInfo?.['kubeletVersion']
  return {
    isCurrent,
    isUpToDate: isCurrent && (node === undefined || (version !== undefined && version === found)),
  }
}
