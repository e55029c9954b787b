/** Converts a MachineDeployment to a source of nodes (cluster-api.md 5, 6). */
import { labels, ownValue, type PriceList } from '@tenon/api'
import { hubKeyOf } from '../hub/keys.ts'
import type { ClusterApiNames } from '../names.ts'
import type { MachineDeployment } from '../objects.ts'
import { capacityOf } from './capacity.ts'
import { Findings } from './findings.ts'
import { maxReplicasOf, ownerOfReplicas, unavailabilityOf } from './growth.ts'
import { type Architecture, nodeLabelsOf } from './node-labels.ts'
import { nodeTaintsOf, taintNotice } from './node-taints.ts'
import type { Participant, Reading } from './participant.ts'
import { priceOf } from './prices.ts'
import type { TemplateFacts } from './template-facts.ts'

/**
 * Reads a member.
 * @param facts about its infrastructure template; undefined if it has none.
 * @param architecture the default for nodes without an architecture label.
 */
export function readDeployment(
  deployment: MachineDeployment,
  facts: TemplateFacts | undefined,
  prices: PriceList,
  names: ClusterApiNames,
  architecture: Architecture = 'amd64',
): Reading {
  const findings = new Findings()
  if (facts?.problem !== undefined) findings.warnings.push(facts.problem)
  const nodeLabels = nodeLabelsOf({ deployment, facts, names, architecture }, findings)
  const capacity = capacityOf(deployment, facts, findings)
  const taints = nodeTaintsOf(deployment, names, findings)
  const notice = taintNotice(taints)
  if (notice !== undefined) findings.warnings.push(notice)
  if (ownValue(nodeLabels, labels.zone) === undefined)
    findings.warnings.push(
      `the zone of its nodes is unknown, so they are removed only when they are empty; set label ${labels.zone}`,
    )
  const typeName = ownValue(nodeLabels, labels.instanceType) ?? ''
  const maxReplicas = maxReplicasOf(deployment, names, findings)
  const unavailability = unavailabilityOf(deployment, names, maxReplicas)
  const pricePerHour = priceOf(deployment, typeName, prices, names, findings)
  const key = hubKeyOf(deployment)
  if (findings.problems.length > 0)
    return { kind: 'excluded', key, because: [...findings.problems, ...templateProblem(facts)].join('; ') }
  const participant: Participant = {
    key,
    deployment,
    typeName,
    labels: nodeLabels,
    taints,
    capacity,
    zone: ownValue(nodeLabels, labels.zone) ?? '',
    capacityType: ownValue(nodeLabels, labels.capacityType) ?? '',
    pricePerHour,
    ...(maxReplicas !== undefined && { maxReplicas }),
    ...(unavailability !== undefined && { unavailability }),
    isKept: ownerOfReplicas(deployment, names) !== undefined,
    warnings: findings.warnings,
  }
  return { kind: 'participant', participant }
}

function templateProblem(facts: TemplateFacts | undefined): readonly string[] {
  return facts?.problem === undefined ? [] : [facts.problem]
}
