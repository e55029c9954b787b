import { uuid } from '@tenon/runtime'
import { BodyReader } from './body-reader.ts'
import type { Call } from './call.ts'
import { instanceTypes } from './catalogue.ts'
import type { CloudContext, Instance } from './cloud-state.ts'
import { invalid, notFound, refused } from './refusal.ts'

/** Instances an anti-affinity group can hold. */
const antiAffinityGroupSize = 8

/** Checks the body of `create-instance` and makes the record of the new instance, not yet stored. */
export function newInstance(context: CloudContext, call: Call): Instance {
  const { state, settings } = context
  const body = new BodyReader(call.body)
  const diskSizeGib = body.requiredInteger('disk-size', { min: 10, max: 51_200 })
  const typeId = body.requiredReference('instance-type')
  const templateId = body.requiredReference('template')
  const name = body.string('name', { min: 1, max: 255 })
  const labels = body.labels('labels', false) ?? {}
  const groupIds = body.references('security-groups')
  const antiAffinityGroupIds = body.references('anti-affinity-groups')
  const userData = body.string('user-data', { min: 1, max: 32_768 })
  const publicIpAssignment = body.oneOf('public-ip-assignment', ['inet4', 'dual', 'none']) ?? 'inet4'
  body.boolean('auto-start')
  body.finish()

  const type = instanceTypes.find((known) => known.id === typeId)
  if (type === undefined) throw notFound('instance-type', typeId)
  if (!type.zones.includes(state.zone)) throw invalid([`${type.name} is not offered in ${state.zone}`])
  if (settings.quotas[type.family] === 0) throw refused(403, `${type.name} is not authorized`)
  if (settings.diskRangeEnforced && type.disk !== undefined) {
    const { minGib, maxGib } = type.disk
    if (diskSizeGib < minGib || diskSizeGib > maxGib) {
      throw invalid([`disk-size of ${type.name} must be from ${minGib} to ${maxGib}`])
    }
  }
  const template = state.templates.get(templateId)
  if (template === undefined) throw notFound('template', templateId)
  for (const id of groupIds) if (!state.securityGroups.has(id)) throw notFound('security-group', id)
  for (const id of antiAffinityGroupIds) checkAntiAffinityGroup(context, id)

  const id = uuid(context.random)
  const tail = id.replaceAll('-', '').slice(-10)
  return {
    id,
    name: name ?? `instance-${id.slice(0, 8)}`,
    type,
    template,
    diskSizeGib,
    labels,
    userData,
    securityGroupIds: groupIds.length > 0 ? groupIds : defaultGroupIds(context),
    antiAffinityGroupIds,
    privateNetworks: [],
    publicIpAssignment,
    publicIp: publicIpAssignment === 'none' ? undefined : freePublicIp(context),
    ipv6Address:
      publicIpAssignment === 'dual' ? `2001:db8::${tail.slice(0, 4)}:${tail.slice(4, 8)}` : undefined,
    macAddress: `06:${(tail.match(/../g) ?? []).join(':')}`,
    instancePoolId: undefined,
    createdAtMs: context.clock.now(),
    state: 'starting',
    placed: false,
    machine: {
      boot: 0,
      phase: 'off',
      whyNotJoined: undefined,
      kubelet: undefined,
      neverBoots: call.effects.some((effect) => effect.kind === 'neverBoots'),
      neverJoins: call.effects.some((effect) => effect.kind === 'neverJoins'),
    },
  }
}

function checkAntiAffinityGroup(context: CloudContext, id: string): void {
  const { antiAffinityGroups, instances } = context.state
  if (!antiAffinityGroups.has(id)) throw notFound('anti-affinity-group', id)
  if (instances.inAntiAffinityGroup(id).length >= antiAffinityGroupSize) throw refused(409, `anti-affinity group ${id} is full`)
}

function defaultGroupIds(context: CloudContext): string[] {
  if (!context.settings.defaultSecurityGroupAttached) return []
  const groups = [...context.state.securityGroups.values()]
  return groups.filter((group) => group.name === 'default').map((group) => group.id)
}

/** The first unused address of a block that is reserved for benchmarks. */
function freePublicIp(context: CloudContext): string {
  const taken = new Set([...context.state.instances.values()].map((instance) => instance.publicIp))
  for (let host = 1; ; host++) {
    const address = `198.${18 + (host >> 16)}.${(host >> 8) & 255}.${host & 255}`
    if (!taken.has(address)) return address
  }
}
