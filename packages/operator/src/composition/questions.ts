/** Builds what answers questions about decisions. */
import { guardedProvider } from '../cloud/guarded-provider.ts'
import { Questions } from '../questions/questions.ts'
import type { Assembly } from './parts.ts'
import { inputsOf } from './provisioning.ts'

export function questionsOf(parts: Assembly): Questions {
  const { caches, launchGuard } = parts
  const provider = guardedProvider(parts.provider, parts.provider, launchGuard, caches.nodePools)
  const asked = { ...parts, provider }
  return new Questions({ ...asked, inputs: inputsOf(asked) })
}
