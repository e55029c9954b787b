/** Builds what keeps room for CapacityBuffers. */
import type { KubeClient } from '@tenon/kube'
import { BufferTemplates } from '../extensions/capacitybuffer/buffer-templates.ts'
import { CapacityBuffers } from '../extensions/capacitybuffer/controller.ts'
import { BufferHydration } from '../extensions/capacitybuffer/hydration.ts'
import type { RunnableSpec } from '../controller.ts'
import type { Assembly } from './parts.ts'

interface Buffering {
  readonly specs: readonly RunnableSpec[]
  readonly hydration: BufferHydration
}

/** @param written by whom conditions are written. */
export function bufferingOf(parts: Assembly, written: Pick<KubeClient, 'patch'>): Buffering {
  const { client, clock, logger, state } = parts
  const { buffers } = parts.caches
  const templates = buffers && new BufferTemplates({ client, buffers })
  const hydration = new BufferHydration({ buffers, state, templates, clock, logger })
  if (buffers === undefined || templates === undefined) return { specs: [], hydration }
  return {
    specs: [new CapacityBuffers({ client: written, buffers, state, templates, clock }), hydration],
    hydration,
  }
}
