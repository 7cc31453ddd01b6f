"""Languages by script and small words."""

from __future__ import annotations

import pytest

from cogrid.rules.language import LANGUAGES, language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("東京の天気を教えてください", "ja"),
        ("PythonのFastAPIでHello Worldを書いて", "ja"),
        ("日本国憲法", "zh"),
        ("请用 Python 写一个快速排序算法", "zh"),
        ("请解释の这个字,然后告诉我它在日语里的意思是什么,以及怎么使用", "zh"),
        ("파이썬으로 정렬 함수를 작성해 줘", "ko"),
        ("Напиши функцию сортировки", "ru"),
        ("Напиши функцію, що сортує їх", "uk"),
        ("اكتب دالة للفرز", "ar"),
        ("یک تابع برای مرتب‌سازی بنویس چگونه", "fa"),
        ("כתוב פונקציה", "he"),
        ("Γράψε μια συνάρτηση", "el"),
        ("एक फ़ंक्शन लिखें", "hi"),
        ("เขียนฟังก์ชัน", "th"),
        ("Write a function that sorts the list", "en"),
        ("Quicksort", "en"),
        ("Schreibe bitte eine Funktion, die sortiert", "de"),
        ("Écris une fonction pour trier les listes", "fr"),
        ("Escribe una función para ordenar los números", "es"),
        ("Scrivi una funzione che ordina gli elementi", "it"),
        ("Escreva uma função que não usa memória", "pt"),
        ("Schrijf een functie voor het sorteren van lijsten", "nl"),
        ("Tôi có một câu hỏi, viết cho tôi", "vi"),
        ("Napisz funkcję, która nie jest długa", "pl"),
        ("Bu nasıl bir şey, ne için var", "tr"),
        ("Übergrößenträger", ""),
        ("12345 !?", ""),
        ("", ""),
    ],
)
def test_language(text: str, code: str) -> None:
    assert language(text) == code
    assert code in LANGUAGES | {""}
