/** CapacityBuffers: what room is for, how much of it there is, and what that costs. */
import { type CapacityBuffer, priceText } from '@tenon/api'
import { conditionStatus, framed, none, type TableOf, unknown } from './cells.ts'

export const bufferTable: TableOf<CapacityBuffer> = (facts) =>
  framed(facts, [
    { title: 'FOR', value: reference },
    { title: 'WANTED', value: ({ status }) => String(status?.replicas ?? none) },
    { title: 'KEPT', value: (buffer) => String(facts.roomOf(buffer)?.kept ?? unknown) },
    { title: 'READY', value: (buffer) => conditionStatus(buffer, 'ReadyForProvisioning') },
    { title: 'PROVISIONED', value: (buffer) => conditionStatus(buffer, 'Provisioning') },
    {
      title: `${facts.currency ?? 'PRICE'}/HOUR`,
      value: (buffer) => priceText(facts.roomOf(buffer)?.pricePerHour, unknown),
    },
    { title: 'STRATEGY', value: ({ spec }) => spec.provisioningStrategy ?? none, isWide: true },
  ])

/** `podtemplate/web`, `deployment/web`. */
function reference({ spec }: CapacityBuffer): string {
  const { podTemplateRef, scalableRef } = spec
  if (podTemplateRef !== undefined) return `podtemplate/${podTemplateRef.name}`
  return scalableRef === undefined ? none : `${scalableRef.kind.toLowerCase()}/${scalableRef.name}`
}
