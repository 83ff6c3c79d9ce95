import { registerSW } from 'virtual:pwa-register'
import { apiFetch } from 'platform-auth-server/client'

registerSW({ immediate: true })
const response = await apiFetch('/api/auth/profile')
const { name } = await response.json()
document.querySelector('#greeting').textContent = `Hello, ${name}`
