import { uuid } from '@tenon/runtime'
import { BodyReader } from '../api/body-reader.ts'
import type { Call } from '../api/call.ts'
import { type InstanceType, instanceTypes } from '../zone/catalogue.ts'
import type { CloudContext } from '../zone/cloud-state.ts'
import type { Instance, Template } from './instance.ts'
import { keepInstance } from './kept-instances.ts'
import type { FaultEffect } from '../faults.ts'
import { isAuthorized } from '../zone/quotas.ts'
import { invalid, notFound, refused } from '../api/refusal.ts'

/** Maximum instances of an anti-affinity group. */
export const antiAffinityGroupSize = 8

/** The properties of a new instance. */
export interface InstanceSpec {
  readonly name: string | undefined
  readonly type: InstanceType
  readonly template: Template
  readonly diskSizeGib: number
  readonly labels: Readonly<Record<string, string>>
  readonly userData: string | undefined
  readonly securityGroupIds: readonly string[]
  readonly antiAffinityGroupIds: readonly string[]
  readonly sshKeys: readonly string[]
  readonly publicIpAssignment: Instance['publicIpAssignment']
  readonly instancePoolId?: string
}

/** Parses the body of `create-instance`. */
export function readInstanceSpec(context: CloudContext, call: Call): InstanceSpec {
  const { state } = context
  const body = new BodyReader(call.body)
  const diskSizeGib = body.requiredInteger('disk-size', { min: 10, max: 51_200 })
  const typeId = body.requiredReference('instance-type')
  const templateId = body.requiredReference('template')
  const name = body.string('name', { min: 1, max: 255 })
  const labels = body.labels('labels', false) ?? {}
  const securityGroupIds = body.references('security-groups')
  const antiAffinityGroupIds = body.references('anti-affinity-groups')
  const userData = body.string('user-data', { min: 1, max: 32_768 })
  const sshKeys = [...new Set([...body.names('ssh-keys'), ...body.name('ssh-key')])]
  const isIpv6Enabled = body.boolean('ipv6-enabled') === true
  const publicIpAssignment =
    body.oneOf('public-ip-assignment', ['inet4', 'dual', 'none']) ?? (isIpv6Enabled ? 'dual' : 'inet4')
  body.boolean('auto-start')
  body.finish()

  const type = instanceTypes.find((known) => known.id === typeId)
  if (type === undefined) throw notFound('instance-type', typeId)
  checkType(context, type, diskSizeGib)
  const template = state.templates.get(templateId)
  if (template === undefined) throw notFound('template', templateId)
  for (const id of securityGroupIds) if (!state.securityGroups.has(id)) throw notFound('security-group', id)
  for (const key of sshKeys) if (!state.sshKeys.has(key)) throw notFound('ssh-key', key)
  for (const id of antiAffinityGroupIds) checkAntiAffinityGroup(context, id)
  return {
    name,
    type,
    template,
    diskSizeGib,
    labels,
    userData,
    securityGroupIds,
    antiAffinityGroupIds,
    sshKeys,
    publicIpAssignment,
  }
}

/** Stores a new instance in state `starting`. */
export function addInstance(
  context: CloudContext,
  spec: InstanceSpec,
  effects: readonly FaultEffect[],
): Instance {
  const { state, random, clock } = context
  const id = uuid(random)
  const tail = id.replaceAll('-', '').slice(-10)
  const instance: Instance = {
    ...spec,
    id,
    name: spec.name ?? `instance-${id.slice(0, 8)}`,
    securityGroupIds: spec.securityGroupIds.length > 0 ? spec.securityGroupIds : defaultGroupIds(context),
    privateNetworks: [],
    publicIp: undefined,
    ipv6Address: undefined,
    macAddress: `06:${(tail.match(/../g) ?? []).join(':')}`,
    instancePoolId: spec.instancePoolId,
    createdAtMs: clock.now(),
    state: 'starting',
    placed: false,
    system: {
      boot: 0,
      phase: 'off',
      whyNotJoined: undefined,
      kubelet: undefined,
      neverBoots: effects.some((effect) => effect.kind === 'neverBoots'),
      neverJoins: effects.some((effect) => effect.kind === 'neverJoins'),
      neverReady: effects.some((effect) => effect.kind === 'neverReady'),
    },
  }
  assignAddresses(context, instance, spec.publicIpAssignment)
  state.instances.add(instance)
  keepInstance(context.kept, instance)
  return instance
}

/** Sets the public addresses of an instance, and releases those that it no longer has. */
export function assignAddresses(
  context: CloudContext,
  instance: Instance,
  assignment: Instance['publicIpAssignment'],
): void {
  const { publicAddresses } = context.state
  instance.publicIpAssignment = assignment
  if (assignment === 'none') {
    if (instance.publicIp !== undefined) publicAddresses.giveBack(instance.publicIp)
    instance.publicIp = undefined
  } else {
    instance.publicIp ??= publicAddresses.take()
  }
  const tail = instance.id.slice(-8)
  instance.ipv6Address = assignment === 'dual' ? `2001:db8::${tail.slice(0, 4)}:${tail.slice(4)}` : undefined
}

function checkType({ state, settings }: CloudContext, type: InstanceType, diskSizeGib: number): void {
  if (!type.zones.includes(state.zone)) throw invalid([`${type.name} is not offered in ${state.zone}`])
  if (!isAuthorized(settings, type)) throw refused(403, `${type.name} is not authorized`)
  if (!settings.diskRangeEnforced || type.disk === undefined) return
  const { minGib, maxGib } = type.disk
  if (diskSizeGib < minGib || diskSizeGib > maxGib) {
    throw invalid([`disk-size of ${type.name} must be from ${minGib} to ${maxGib}`])
  }
}

function checkAntiAffinityGroup(context: CloudContext, id: string): void {
  const { antiAffinityGroups, instances } = context.state
  if (!antiAffinityGroups.has(id)) throw notFound('anti-affinity-group', id)
  if (instances.inAntiAffinityGroup(id).length >= antiAffinityGroupSize)
    throw refused(409, `anti-affinity group ${id} is full`)
}

function defaultGroupIds(context: CloudContext): string[] {
  if (!context.settings.defaultSecurityGroupAttached) return []
  const groups = [...context.state.securityGroups.values()]
  return groups.filter((group) => group.name === 'default').map((group) => group.id)
}
