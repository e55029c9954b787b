/** MachineDeployments as users write them, and what becomes of them. */
import assert from 'node:assert/strict'
import { labels, noPrices, type PriceList } from '@tenon/api'
import type { Participant, Reading } from '../catalogue/participant.ts'
import { readDeployment } from '../catalogue/read-deployment.ts'
import type { TemplateFacts } from '../catalogue/template-facts.ts'
import { type ClusterApiNames, capacityAnnotations, defaultGroup, namesOf } from '../names.ts'
import type { MachineDeployment, MachineTemplate } from '../objects.ts'

export const names: ClusterApiNames = namesOf(defaultGroup)

/** What a test says of a MachineDeployment. */
export interface DeploymentParts {
  readonly name?: string
  readonly namespace?: string
  /** Of its nodes, as the labels annotation has them. */
  readonly nodeLabels?: Readonly<Record<string, string>>
  /** Beside, or in place of, those that tell 4 cpu and 16Gi. */
  readonly annotations?: Readonly<Record<string, string>>
  /** Whether it has no annotations but those given. */
  readonly bare?: boolean
  /** Beside the label of members. */
  readonly labels?: Readonly<Record<string, string>>
  readonly template?: MachineTemplate
  readonly spec?: NonNullable<MachineDeployment['spec']>
}

/** A member of instance type `NAME` in zone `zone-a`, with 4 cpu and 16Gi, unless said otherwise. */
export function aDeployment({
  name = 'md-0',
  namespace = 'default',
  nodeLabels = { [labels.instanceType]: name, [labels.zone]: 'zone-a' },
  annotations = {},
  bare = false,
  labels: own = {},
  template = {},
  spec = {},
}: DeploymentParts = {}): MachineDeployment {
  const told = Object.entries(nodeLabels).map(([key, value]) => `${key}=${value}`)
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'MachineDeployment',
    metadata: {
      name,
      namespace,
      labels: { [names.member]: '', ...own },
      annotations: {
        ...(!bare && { [capacityAnnotations.cpu]: '4', [capacityAnnotations.memory]: '16Gi' }),
        ...(told.length > 0 && { [capacityAnnotations.labels]: told.join(',') }),
        ...annotations,
      },
    },
    spec: { clusterName: 'workload', ...spec, template },
  }
}

/** What a MachineDeployment turns out to be. */
export function readingOf(
  deployment: MachineDeployment,
  { facts, prices = noPrices }: { readonly facts?: TemplateFacts; readonly prices?: PriceList } = {},
): Reading {
  return readDeployment(deployment, facts, prices, names)
}

/** The participant that a MachineDeployment is. */
export function aParticipant(
  parts: DeploymentParts = {},
  rest: { readonly facts?: TemplateFacts; readonly prices?: PriceList } = {},
): Participant {
  const reading = readingOf(aDeployment(parts), rest)
  if (reading.kind === 'excluded') assert.fail(reading.because)
  return reading.participant
}

/** Why a MachineDeployment is not used. */
export function exclusionOf(parts: DeploymentParts, facts?: TemplateFacts): string {
  const reading = readingOf(aDeployment(parts), facts === undefined ? {} : { facts })
  if (reading.kind === 'participant') assert.fail('it is used')
  return reading.because
}
