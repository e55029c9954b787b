import { type DeviceTaint, type DeviceTaintRule, isRecord, type ResourceSlice } from '@tenon/api'
import { isDeepStrictEqual } from 'node:util'
import type { StoredObject } from '../../contract.ts'

/**
 * Sets missing `timeAdded` of device taints, from which tolerationSeconds count. Reset when a rule changes its effect.
 * @param old the stored object, if any.
 */
export function withTaintTimes(
  kind: string,
  object: StoredObject,
  old: StoredObject | undefined,
  now: string,
): StoredObject {
  if (kind === 'ResourceSlice') return sliceWithTimes(object as StoredObject & ResourceSlice, now)
  if (kind !== 'DeviceTaintRule') return object
  return ruleWithTime(
    object as StoredObject & DeviceTaintRule,
    old as (StoredObject & DeviceTaintRule) | undefined,
    now,
  )
}

function timed(taint: DeviceTaint, now: string): DeviceTaint {
  return taint.timeAdded === undefined || taint.timeAdded === null ? { ...taint, timeAdded: now } : taint
}

function sliceWithTimes(slice: StoredObject & ResourceSlice, now: string): StoredObject {
  const { spec } = slice as StoredObject & Partial<ResourceSlice>
  const devices: unknown = spec?.devices
  if (!Array.isArray(devices) || !devices.some(hasTaints)) return slice
  const filled = devices.map((device: unknown) =>
    hasTaints(device) ? { ...device, taints: device.taints.map((taint) => timed(taint, now)) } : device,
  )
  return { ...slice, spec: { ...spec, devices: filled } }
}

function hasTaints(device: unknown): device is { readonly taints: readonly DeviceTaint[] } {
  if (typeof device !== 'object' || device === null || !('taints' in device)) return false
  return Array.isArray(device.taints) && device.taints.every(isRecord)
}

function ruleWithTime(
  rule: StoredObject & DeviceTaintRule,
  old: (StoredObject & DeviceTaintRule) | undefined,
  now: string,
): StoredObject {
  const { spec } = rule as StoredObject & Partial<DeviceTaintRule>
  if (spec === undefined || !isRecord(spec.taint)) return rule
  const before = old?.spec.taint
  const isNew =
    before !== undefined &&
    before.effect !== spec.taint.effect &&
    isDeepStrictEqual(before.timeAdded, spec.taint.timeAdded)
  const taint = isNew ? { ...spec.taint, timeAdded: now } : timed(spec.taint, now)
  return { ...rule, spec: { ...spec, taint } }
}
