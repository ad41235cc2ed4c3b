"""The weather of the coming days, from Open-Meteo: a place by name or position, in a few lines."""

from dataclasses import dataclass
from urllib.parse import urlencode

from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs, UpstreamError
from agent_gate.sources.web.fetching import WebClient
from agent_gate.sources.web.search import check_json
from agent_gate.sources.web.settings import WeatherSettings

NAME = "Open-Meteo"
DAILY = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,precipitation_probability_max,wind_speed_10m_max"
CURRENT = "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m"
WINDY = 30.0
SKY = {
    0: "clear",
    1: "mostly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "freezing fog",
    51: "light drizzle",
    53: "drizzle",
    55: "heavy drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "light snow showers",
    86: "snow showers",
    95: "thunderstorm",
    96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the weather is asked for, and what people call it."""

    latitude: float
    longitude: float
    name: str


async def find_spot(
    web: WebClient, settings: WeatherSettings, arguments: dict[str, Json], deadline: float
) -> Spot:
    """By position where one is given, else by name."""
    latitude, longitude = arguments.get("latitude"), arguments.get("longitude")
    if latitude is not None and longitude is not None:
        return Spot(latitude, longitude, str(arguments.get("location") or f"{latitude}, {longitude}"))
    name = str(arguments.get("location") or "").strip()
    if not name:
        raise InvalidArgs("Give a location, or latitude and longitude")
    asked = urlencode({"name": name, "count": 1, "format": "json"})
    found = check_json(await web.ask(f"{settings.places_url}?{asked}", deadline), NAME).get("results")
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise InvalidArgs(f"No place is called {name[:100]}. Try the name of a larger town, or a position")
    place = found[0]
    known = [str(place[key]) for key in ("name", "admin1", "country") if place.get(key)]
    try:
        return Spot(float(place["latitude"]), float(place["longitude"]), ", ".join(dict.fromkeys(known)))
    except (KeyError, TypeError, ValueError):
        raise UpstreamError(f"{NAME} knows the place, but not where it is") from None


async def get_weather(
    web: WebClient, settings: WeatherSettings, arguments: dict[str, Json], deadline: float
) -> str:
    spot = await find_spot(web, settings, arguments, deadline)
    days = min(7, max(1, int(arguments.get("days") or 3)))
    asked = urlencode(
        {
            "latitude": spot.latitude,
            "longitude": spot.longitude,
            "current": CURRENT,
            "daily": DAILY,
            "timezone": "auto",
            "forecast_days": days,
        }
    )
    report = check_json(await web.ask(f"{settings.url}?{asked}", deadline), NAME)
    try:
        return "\n".join([spot.name, *now_line(report), *day_lines(report["daily"])])
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        raise UpstreamError(f"{NAME} answered in a form that is not known") from None


def now_line(report: dict[str, Json]) -> list[str]:
    now = report.get("current")
    if not isinstance(now, dict):
        return []
    felt = round(now["apparent_temperature"])
    line = (
        f"Now: {sky(now['weather_code'])}, {round(now['temperature_2m'])} °C (feels like {felt}), "
        f"humidity {round(now['relative_humidity_2m'])} %, wind {round(now['wind_speed_10m'])} km/h"
    )
    return [line]


def day_lines(daily: dict[str, Json]) -> list[str]:
    return [day_line(daily, place) for place in range(len(daily["time"]))]


def day_line(daily: dict[str, Json], place: int) -> str:
    """One day; rain and wind only where there is some."""
    low, high = daily["temperature_2m_min"][place], daily["temperature_2m_max"][place]
    parts = [f"{daily['time'][place]}: {sky(daily['weather_code'][place])}, {round(low)} to {round(high)} °C"]
    rain, chance = daily["precipitation_sum"][place] or 0, daily["precipitation_probability_max"][place]
    if rain > 0:
        parts.append(f"{rain} mm" + (f" ({round(chance)} %)" if chance is not None else ""))
    wind = daily["wind_speed_10m_max"][place] or 0
    if wind > WINDY:
        parts.append(f"wind up to {round(wind)} km/h")
    return ", ".join(parts)


def sky(code: Json) -> str:
    return SKY.get(int(code), "unknown sky")
