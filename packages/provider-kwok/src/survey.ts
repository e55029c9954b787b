/** Simulated nodes belong to no group; only their types are known. */
import type { SurveyModule } from '@tenon/provider'
import { providerIdPrefix } from './launch.ts'
import { kwokNodeClassKind } from './nodeclass.ts'

export const surveyModule: SurveyModule = {
  recognizes: ({ spec }) => (spec?.providerID?.startsWith(providerIdPrefix) === true ? 'instance' : 'none'),
  nodeClass: kwokNodeClassKind,
  nodeClassSpecOf: () => ({}),
  survey: () => Promise.resolve({ groups: [], remarks: [] }),
}
